package alarm

import (
	"cmp"
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Rows is the number of latest labelled rows that the ECE in an alert covers (stage.Key.Recent). With fewer rows since
// the estimated start it covers these, or with more, as many panes as are still kept.
const Rows = 2000

// Stage keeps the alarms of all keys of a task.
type Stage struct {
	env *stage.Env
	cfg *spec // nil = no alarms
}

// New returns the stage. If cfg is nil, the stage keeps no alarms and ends those that a checkpoint holds.
func New(env *stage.Env, cfg *Config) *Stage {
	if cfg == nil {
		return &Stage{env: env}
	}
	return &Stage{env, &spec{Config: *cfg, perPane: float64(env.Pane) / float64(cfg.FalseAlarmEvery)}}
}

// State holds the alarms of one key, one for each signal.
type State struct {
	stage  *Stage
	key    *stage.Key
	alarms []*keyAlarm
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	st := &State{stage: t, key: k}
	if t.cfg == nil || k.Slice != "" && !t.cfg.Slices {
		return st
	}
	for _, signal := range t.cfg.Signals {
		a := newKeyAlarm(t.cfg, signal, k.Slice != "", k.K)
		a.alert.Order = len(k.Alerts)
		a.alert.Refresh = func(out *record.Alert, end int64) error {
			t.refresh(k, a, out, end)
			return nil
		}
		if signal == stage.SignalCalibrated && t.cfg.Matured == 0 { // else the first labels are mostly of wrong rows
			a.alert.Persists = func() bool { return t.persists(k, a) }
		}
		k.Alerts = append(k.Alerts, a.alert)
		st.alarms = append(st.alarms, a)
	}
	return st
}

// Observe implements stage.KeyState.
func (s *State) Observe(in *stage.Pane) error {
	if s.key.Version.Shadow {
		return nil
	}
	for _, a := range s.alarms {
		a.fired, a.observed = nil, false
		if err := s.stage.observeOne(a, in); err != nil {
			return fmt.Errorf("alarm on %s: %w", a.signal, err)
		}
	}
	return nil
}

// Open implements stage.KeyState.
func (s *State) Open() bool {
	for _, a := range s.alarms {
		if a.waiting.Len() > 0 {
			return true
		}
	}
	return false
}

// Merge implements stage.KeyState. It does nothing: a test covers the rows of its own slice only and ends with it.
func (s *State) Merge(stage.KeyState) error { return nil }

// Close implements stage.Stage. It decides the alarms of all keys together.
func (t *Stage) Close(c *stage.Closing) error {
	if t.cfg == nil {
		return nil
	}
	if err := t.putOff(c); err != nil {
		return err
	}
	for _, signal := range t.cfg.Signals {
		off, of := t.rejected(c, signal)
		for _, k := range c.Keys {
			if a := k.State.(*State).on(signal); a != nil {
				t.decide(k.Key, a, off[k.Slice], of, c)
				a.fired = nil // what it says is in the alert
			}
		}
	}
	return nil
}

func (t *Stage) observeOne(a *keyAlarm, in *stage.Pane) error {
	panes, err := t.panes(t.cfg, a, in)
	if err != nil {
		return err
	}
	for _, p := range panes {
		if p.sums.N() == 0 {
			continue
		}
		a.observed = true
		if err := a.observe(t.cfg, p); err != nil {
			return err
		}
	}
	return nil
}

// decide updates the state of an alarm and records the change for publishing.
func (t *Stage) decide(k *stage.Key, a *keyAlarm, rejected bool, of int, c *stage.Closing) {
	a.seen = cmp.Or(a.alert.OverFrom, a.alert.Since)
	state, changed := a.decide(t.cfg, rejected, c.End, t.env.Pane)
	if !changed {
		return
	}
	if !a.slice {
		of = 0
	}
	if state == stage.Firing {
		t.date(a, k)
	}
	a.alert.Change = t.describe(k, a, state, c, of)
}

// date moves the start of an alert from the panes of the tests, which are of labels, to the predictions: refits and
// people need to know from which prediction on the error is there. In matured mode panes are late by the age that rows
// must have.
func (t *Stage) date(a *keyAlarm, k *stage.Key) {
	a.seen, a.delay = a.alert.Since, t.env.Maturity.After
	if a.delay == 0 {
		a.delay = k.LabelDelay(a.seen)
		a.delay -= a.delay % t.env.Pane
	}
	a.alert.Since = k.Resumed(a.alert.Since-a.delay, t.env.Pane)
	a.alert.OverFrom = a.seen
}

// rejected returns the slices of a version that the e-BH procedure rejects on a signal, and the number of slices
// tested. A slice is tested once its alarm has seen rows. The expected share of false ones among the rejections on this
// signal is at most FDR at any time.
func (t *Stage) rejected(c *stage.Closing, signal string) (off map[string]bool, of int) {
	var logE []float64
	var names []string
	for _, k := range c.Keys {
		a := k.State.(*State).on(signal)
		if a != nil && a.slice && a.tests != nil && a.tests.Headline.Panes() > 0 {
			logE, names = append(logE, a.logE()), append(names, k.Slice)
		}
	}
	off = map[string]bool{}
	for _, i := range evalue.EBH(logE, t.cfg.FDR) {
		off[names[i]] = true
	}
	return off, len(names)
}

// refresh gives an alert that is published again the ECE of the latest rows, of none before its start. Its evidence
// stays that of the firing.
func (t *Stage) refresh(k *stage.Key, a *keyAlarm, out *record.Alert, end int64) {
	bins, rows, _ := k.Recent.After(a.confidence(), a.seen)
	if rows == 0 {
		return
	}
	out.Window = sinceStart
	if rows >= Rows {
		bins, rows = k.Recent.Last(a.confidence(), Rows)
		out.Window = lastRows(Rows)
	}
	stage.SetFigures(out, bins, metric.Resample(bins, t.env.Resamples, k.Seed(a.signal, end/t.env.Pane)))
	out.Rows, out.Diagram = rows, t.env.Diagram(k, out.At)
	before := out.Message
	out.Message = a.message(out, bins)
	t.warn(k, out, before)
}

// on returns the alarm on a signal, or nil.
func (s *State) on(signal string) *keyAlarm {
	for _, a := range s.alarms {
		if a.signal == signal {
			return a
		}
	}
	return nil
}

// AppendState implements stage.KeyState.
func (s *State) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(s.alarms)))
	for _, a := range s.alarms {
		var err error
		if dst, err = binenc.AppendBlock(binenc.AppendString(dst, a.signal), a.append); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// RestoreState implements stage.KeyState.
func (s *State) RestoreState(r *binenc.Reader, _ *acc.Decoder) error {
	for range r.Count(2, binenc.MaxItems) {
		signal, body := r.String(binenc.MaxName), r.Bytes(binenc.MaxBytes)
		if r.Err() != nil {
			break
		}
		if a := s.on(signal); a != nil {
			if err := a.restore(body, s.stage.cfg); err != nil {
				return fmt.Errorf("alarm on %s: %w", signal, err)
			}
		} else if err := s.switchedOff(body); err != nil {
			return fmt.Errorf("alarm on %s, which is switched off: %w", signal, err)
		}
	}
	return r.Err()
}

// switchedOff reads the state of an alarm that is no longer configured, and ends its alert.
func (s *State) switchedOff(body []byte) error {
	r := binenc.NewReader(body)
	_ = r.String(binenc.MaxName) // the fingerprint of the specification
	var a stage.AlertState
	a.Restore(&r)
	why := "switched off: the configuration has no alarm %s here any more; whether the error is gone is not known"
	s.key.Ended = append(s.key.Ended, stage.Ended{State: a, Why: fmt.Sprintf(why, a.Rule())})
	return r.Err()
}
