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

// Stage is the closing step of one model task.
type Stage struct {
	env   *stage.Env
	cfg   TriggerConfig
	heads proving.Config
}

// New returns the stage.
func New(env *stage.Env, cfg TriggerConfig, heads proving.Config) *Stage {
	return &Stage{env: env, cfg: cfg, heads: heads}
}

// enabled reports whether there is anything to do.
func (g *Stage) enabled() bool { return g.cfg.Enabled || g.heads.Shadow }

// Model is the state of one model, by version.
type Model struct {
	stage  *Stage
	states map[string]*state
}

// NewModel returns the state of a model without versions.
func (g *Stage) NewModel() *Model { return &Model{stage: g, states: map[string]*state{}} }

// state is what is known of one version: the rows that its trigger judges, the requests that it has made, and the
// shadows that came of them.
type state struct {
	stage   *Stage
	version *stage.Version

	reference  *acc.Set // of the first ReferenceRows sampled rows, as the calibrators in force made them
	blocks     []block
	over       excess
	tried      tried
	number     int     // of the newest request
	asked      []int64 // event times of the requests within the budget's period
	evaluators []*evaluator
	rows       []acc.SampleRow // of the label pane at hand
}

// Add adds a version of the model.
func (m *Model) Add(v *stage.Version) { m.states[v.Name] = &state{stage: m.stage, version: v} }

// Observe keeps a label pane's sampled rows of a version until Close.
func (m *Model) Observe(v *stage.Version, in *stage.Pane) {
	if m.stage.enabled() {
		m.states[v.Name].rows = in.Rows
	}
}

// Close evaluates shadows and then the trigger, when all versions of the model have processed a label pane.
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

// Shadowing reports whether a version is a shadow that has not been found ready: then it raises no alarm, is not
// refitted and asks for no head.
func (m *Model) Shadowing(name string) bool {
	base, number, ok := record.BaseVersion(name)
	if !ok || !m.stage.heads.Shadow || m.states[base] == nil {
		return false
	}
	if e := m.states[base].evaluator(number); e != nil {
		return e.state != record.ShadowReady
	}
	return true
}

// discover adds evaluators of shadows that no request of this log was for: heads that came otherwise.
func (m *Model) discover() {
	for _, name := range slices.Sorted(maps.Keys(m.states)) {
		base, number, ok := record.BaseVersion(name)
		if !ok || len(m.states[name].rows) == 0 || m.states[base] == nil {
			continue
		}
		if s := m.states[base]; s.evaluator(number) == nil {
			s.evaluators = append(s.evaluators, &evaluator{number: number, state: statePending})
			s.number = max(s.number, number)
		}
	}
}

// Forget drops the rows of a version that is out of service. Its requests and shadows stay.
func (m *Model) Forget(name string) {
	s := m.states[name]
	s.reference, s.blocks, s.over, s.tried = nil, nil, excess{}, tried{}
}

// evaluator returns that of a head; nil where there is none.
func (s *state) evaluator(number int) *evaluator {
	for _, e := range s.evaluators {
		if e.number == number {
			return e
		}
	}
	return nil
}

func (s *state) idle() bool { return s.reference == nil && s.number == 0 && len(s.evaluators) == 0 }

func (s *state) whole() *stage.Key { return s.stage.env.Whole(s.version) }

// ece returns the ECE of a version's rows at a label pane and its null expectation, which is not computed (0) where the
// ECE is at most least.
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
