package finetune

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Stage asks for new heads and evaluates them, for all models of a task.
type Stage struct {
	env   *stage.Env
	cfg   TriggerConfig
	heads proving.Config
}

// New returns the stage; env is that of the model task.
func New(env *stage.Env, cfg TriggerConfig, heads proving.Config) *Stage {
	return &Stage{env: env, cfg: cfg, heads: heads}
}

// enabled reports whether the trigger or the shadow evaluator is on.
func (g *Stage) enabled() bool { return g.cfg.Enabled || g.heads.Shadow }

// Model is the state of one model, with one entry for each version.
type Model struct {
	stage  *Stage
	states map[string]*state
}

// NewModel returns the state of a model that has no versions yet.
func (g *Stage) NewModel() *Model { return &Model{stage: g, states: map[string]*state{}} }

// state is the state of one version: the latest rows for its trigger, the requests made so far, and the evaluators of
// the shadows that came of them.
type state struct {
	stage   *Stage
	version *stage.Version

	reference  *acc.Set // first ReferenceRows sampled rows, scored by the calibrators in force then
	blocks     []block
	over       excess
	tried      tried
	number     int     // number of the newest request
	asked      []int64 // event times of the requests that count for the cool-down or the budget
	evaluators []*evaluator
	rows       []acc.SampleRow // sampled rows of the current label pane
}

// Add gives a new version of the model a state of its own.
func (m *Model) Add(v *stage.Version) { m.states[v.Name] = &state{stage: m.stage, version: v} }

// Observe keeps the sampled rows of a version's label pane until Close.
func (m *Model) Observe(v *stage.Version, in *stage.Pane) {
	if m.stage.enabled() {
		m.states[v.Name].rows = in.Rows
	}
}

// Close runs the shadow evaluator and then the trigger. The task calls it when all versions of the model have processed
// a label pane.
func (m *Model) Close(pane int64) error {
	if !m.stage.enabled() {
		return nil
	}
	if m.stage.heads.Shadow {
		m.discover()
	}
	end := (pane + 1) * m.stage.env.Pane
	for _, name := range slices.Sorted(maps.Keys(m.states)) {
		if err := m.evaluateAll(m.states[name], end); err != nil {
			return fmt.Errorf("shadows of version %q: %w", name, err)
		}
		if m.Shadowing(name) {
			continue
		}
		if err := m.states[name].trigger(pane); err != nil {
			return fmt.Errorf("trigger of version %q: %w", name, err)
		}
	}
	for _, s := range m.states {
		s.rows = nil
	}
	return nil
}

// Shadowing reports whether a version is a shadow that is not ready. Such a version raises no alarm, is not refitted
// and asks for no head.
func (m *Model) Shadowing(name string) bool {
	base, number, ok := record.BaseVersion(name)
	if !ok || !m.stage.heads.Shadow || m.states[base] == nil {
		return false
	}
	if e := m.states[base].evaluatorOf(number); e != nil {
		return e.state != record.ShadowReady
	}
	return true
}

// discover adds evaluators for shadows that no request in this log asked for, such as a head that someone published by
// hand.
func (m *Model) discover() {
	for _, name := range slices.Sorted(maps.Keys(m.states)) {
		base, number, ok := record.BaseVersion(name)
		if !ok || len(m.states[name].rows) == 0 || m.states[base] == nil {
			continue
		}
		if s := m.states[base]; s.evaluatorOf(number) == nil {
			s.evaluators = append(s.evaluators, &evaluator{number: number, state: statePending})
			s.number = max(s.number, number)
		}
	}
}

// Forget drops the rows of a version that is out of service, or has another number of classes now. Its requests and
// evaluators stay.
func (m *Model) Forget(name string) {
	s := m.states[name]
	s.reference, s.blocks, s.over, s.tried = nil, nil, excess{}, tried{}
	for _, e := range s.evaluators {
		e.pairs = nil
	}
}

// Remove drops all that is known of a version, unless a head was asked for it. It reports whether it has.
func (m *Model) Remove(name string) bool {
	if s := m.states[name]; s != nil && !s.idle() {
		return false
	}
	delete(m.states, name)
	return true
}

// evaluatorOf returns the evaluator of a head, or nil.
func (s *state) evaluatorOf(number int) *evaluator {
	for _, e := range s.evaluators {
		if e.number == number {
			return e
		}
	}
	return nil
}

func (s *state) idle() bool { return s.reference == nil && s.number == 0 && len(s.evaluators) == 0 }

func (s *state) whole() *stage.Key { return s.stage.env.Whole(s.version) }

// ece returns the ECE of a version's rows at a label pane and its null expectation. If the ECE is at most least, the
// null expectation is not computed and 0.
func (s *state) ece(set *acc.Set, pane int64, least float64) (ece, null float64, err error) {
	bins, err := set.Labelled.MSP.Bins(s.stage.env.Bins)
	if err != nil {
		return 0, 0, err
	}
	if ece = metric.ECE(bins); ece <= least {
		return ece, 0, nil
	}
	seed := (&stage.Key{Version: s.version}).Seed("trigger", pane)
	return ece, metric.Resample(bins, s.stage.env.Resamples, seed).Null, nil
}

// Reasons of a request.
const (
	reasonECE      = "ece"
	reasonAccuracy = "accuracy"
	reasonAURC     = "aurc"
)
