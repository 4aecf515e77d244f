package rule

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Rule is one rule of the configuration for one key.
type Rule interface {
	// Observe adds a label pane and returns how many of its rows count for the rule.
	Observe(in *stage.Pane) (rows int64, err error)
	// Evaluate evaluates the latest rows at the end of a label pane. ok is false if there are too few rows, or nothing
	// to compare with.
	Evaluate(pane int64) (j Evaluation, ok bool, err error)
	// Append appends the rule's state. Restore reads all of it; on bad input it fails the reader.
	Append(dst []byte) []byte
	Restore(r *binenc.Reader)
}

// context is what a rule has access to.
type context struct {
	env *stage.Env
	cfg *Config
	key *stage.Key
}

// newRule returns the rule for a checked configuration.
func newRule(c *context) Rule {
	k, ok := kindOf(c.cfg.kindName())
	if !ok {
		panic("rule: kind " + c.cfg.kindName())
	}
	return k.make(c)
}

// Stage evaluates the rules of all keys of a task.
type Stage struct {
	env   *stage.Env
	rules []Config
}

// New returns the stage for the given rules.
func New(env *stage.Env, rules []Config) *Stage { return &Stage{env, rules} }

// State holds the rules of one key, in the order of the configuration.
type State struct {
	stage   *Stage
	key     *stage.Key
	entries []*entry
}

// entry is one rule of a key with its alert.
type entry struct {
	*context
	rule  Rule
	alert *stage.Alert
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	s := &State{stage: t, key: k}
	for i := range t.rules {
		cfg := &t.rules[i]
		severity := slices.Index(stage.Severities, cfg.Severity)
		e := &entry{context: &context{t.env, cfg, k}, alert: &stage.Alert{Rule: cfg.Name, Severity: severity,
			Order: len(k.Alerts), Signal: cfg.Signal}}
		e.rule = newRule(e.context)
		e.alert.Refresh = func(out *record.Alert, end int64) error { return t.refresh(e, out, end) }
		k.Alerts = append(k.Alerts, e.alert)
		s.entries = append(s.entries, e)
	}
	return s
}

// Observe implements stage.KeyState.
func (s *State) Observe(in *stage.Pane) error {
	if s.key.Version.Shadow {
		return nil
	}
	for _, e := range s.entries {
		if s.key.Slice != "" && !e.cfg.Slices {
			continue
		}
		if err := s.stage.evaluate(e, in); err != nil {
			return fmt.Errorf("rule %s: %w", e.cfg.Name, err)
		}
	}
	return nil
}

// Open implements stage.KeyState.
func (s *State) Open() bool { return false }

// Merge implements stage.KeyState. It does nothing: a rule window covers the rows of its own slice only and ends with
// it.
func (s *State) Merge(stage.KeyState) error { return nil }

// Close implements stage.Stage.
func (t *Stage) Close(*stage.Closing) error { return nil }

// evaluate evaluates one rule of a key at the end of a label pane, and records the change for publishing.
func (t *Stage) evaluate(e *entry, in *stage.Pane) error {
	rows, err := e.rule.Observe(in)
	if err != nil || rows == 0 {
		return err
	}
	j, ok, err := e.rule.Evaluate(in.Index)
	if err != nil || !ok || j.Rows < max(e.cfg.MinRows, 1) || !e.cfg.warm(e.key) {
		return err
	}
	if e.cfg.beyond(j.Value, e.cfg.Fire) && e.alert.State != stage.Firing {
		if j, err = j.bounded(); err != nil {
			return err
		}
	}
	if state, changed := e.cfg.move(&e.alert.AlertState, j, in.End-t.env.Pane, in.End); changed {
		e.alert.Change, err = t.describe(e, state, j, in.End)
	}
	return err
}

// refresh describes anew an alert that is published again: its figures and its message are of the rows until now. What
// cannot be evaluated stays as it was.
func (t *Stage) refresh(e *entry, out *record.Alert, end int64) error {
	j, ok, err := e.rule.Evaluate(end/t.env.Pane - 1)
	if err != nil || !ok {
		return err
	}
	now, err := t.describe(e, out.State, j, end)
	if err == nil {
		*out = *now
	}
	return err
}

// AppendState implements stage.KeyState.
func (s *State) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(s.entries)))
	for _, e := range s.entries {
		dst = binenc.AppendString(binenc.AppendString(dst, e.cfg.Name), e.cfg.fingerprint())
		// A rule window is small, so the copy is cheap.
		dst = binenc.AppendBytes(e.alert.Append(dst), e.rule.Append(nil))
	}
	return dst, nil
}

// RestoreState implements stage.KeyState.
func (s *State) RestoreState(r *binenc.Reader, _ *acc.Decoder) error {
	for range r.Count(7, binenc.MaxItems) {
		name, fingerprint := r.String(binenc.MaxName), r.String(binenc.MaxName)
		var state stage.AlertState
		state.Restore(r)
		body := r.Bytes(binenc.MaxBytes)
		if r.Err() != nil {
			break
		}
		s.adopt(name, fingerprint, state, body)
	}
	return r.Err()
}

// adopt gives a saved state to the rule of the same name and fingerprint. If there is no such rule, it ends the alert.
func (s *State) adopt(name, fingerprint string, state stage.AlertState, body []byte) {
	at := slices.IndexFunc(s.entries, func(e *entry) bool { return e.cfg.Name == name })
	why := "switched off: the configuration has no rule %s here any more; whether the error is gone is not known"
	if at >= 0 && (s.key.Slice == "" || s.entries[at].cfg.Slices) {
		e := s.entries[at]
		if e.cfg.fingerprint() == fingerprint && e.restore(body) {
			e.alert.AlertState = state
			return
		}
		why = "rule %s has changed and begins anew; whether the error is gone is not known"
	}
	s.key.Ended = append(s.key.Ended, stage.Ended{State: state, Why: fmt.Sprintf(why, name)})
}

// restore reads the rule's state. It returns false if the state belongs to another kind of rule.
func (e *entry) restore(body []byte) bool {
	fresh, r := newRule(e.context), binenc.NewReader(body)
	fresh.Restore(&r)
	if r.Close() != nil {
		return false
	}
	e.rule = fresh
	return true
}
