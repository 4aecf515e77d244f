package drift

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Stage follows the confidences and the classes of all keys of a task.
type Stage struct {
	env *stage.Env
	cfg *Config // nil = off
}

// New returns the stage.
func New(env *stage.Env, cfg *Config) *Stage { return &Stage{env, cfg} }

// State holds what the stage knows of one key: the reference, the map of confidences, and the class counts. All counts
// are numbers of rows, not sums of weights.
type State struct {
	stage     *Stage
	key       *stage.Key
	ref, next reference
	q         confidenceMap
	past      pastErrors
	classes   classDrift
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	if t.cfg == nil || k.Slice != "" && !t.cfg.Slices {
		return nil
	}
	d := &State{stage: t, key: k, classes: classDrift{k: k.K}}
	k.Estimator, k.Corrector = d, d
	k.Shows = append(k.Shows, d.show)
	k.Shown = append(k.Shown, d.shown)
	return d
}

// Observe implements stage.KeyState. It updates the class counts and adds a label pane to the reference.
func (d *State) Observe(in *stage.Pane) error {
	s := d.stage.cfg
	if err := d.q.follow(d.key, in); err != nil {
		return err
	}
	if d.q.turned {
		d.past.block, d.past.rows = nil, 0 // its rows had another map
	}
	if in.CountsClasses() {
		d.classes.soft.fresh += int64(len(in.Rows))
	}
	if d.ref.labelledFull(s) {
		if err := d.past.add(d, in); err != nil {
			return err
		}
	}
	to := &d.ref
	if s.Reference == Rolling && d.ref.full(s) {
		to = &d.next
	}
	if err := to.add(s, in); err != nil {
		return err
	}
	if s.Reference == Rolling && d.next.full(s) {
		d.ref, d.next = d.next, reference{}
	}
	return nil
}

// Close implements stage.Stage.
func (t *Stage) Close(*stage.Closing) error { return nil }

// Open implements stage.KeyState.
func (d *State) Open() bool { return false }

// Merge implements stage.KeyState. It does nothing: a reference covers the rows of its own slice only and ends with it.
func (d *State) Merge(stage.KeyState) error { return nil }

// Mapped implements stage.Estimator.
func (d *State) Mapped() (since int64, turned bool) { return d.calibrated().since, d.q.turned }

// Confidence implements stage.Estimator.
func (d *State) Confidence(c float64) float64 {
	return d.calibrated().at(c)
}

// calibrated returns the map of the key's rows, or of the whole version's: a slice that keeps no rows has none of its
// own.
func (d *State) calibrated() *confidenceMap {
	if d.stage.cfg.ReadsRows(d.key.Slice) {
		return &d.q
	}
	if whole, ok := d.stage.env.Whole(d.key.Version).Estimator.(*State); ok {
		return &whole.q
	}
	return &d.q
}

// Reference implements stage.Estimator.
func (d *State) Reference() (right, rows float64, full bool) {
	for _, n := range d.ref.outcome[1] {
		right += n
	}
	return right, d.ref.labelled, d.ref.labelledFull(d.stage.cfg)
}

// Collect implements stage.Corrector.
func (d *State) Collect(in *stage.Pane, rows int64) (now *acc.ClassCounts, err error) {
	c := &d.classes
	for _, cell := range in.Cells {
		if c.block, err = plusClasses(c.block, cell.Set); err != nil {
			return nil, err
		}
	}
	if c.block == nil {
		return nil, nil
	}
	if n, _ := c.block.Total(); n < rows {
		return nil, nil
	}
	now, c.block = c.block, nil
	return now, nil
}

// Corrected implements stage.Corrector.
func (d *State) Corrected() int64 {
	return d.classes.at
}

// Correct implements stage.Corrector.
func (d *State) Correct(now *acc.ClassCounts, alpha float64, at int64) (*stage.Correction, string) {
	found, why := d.classes.propose(d.key, now, alpha)
	if found == nil {
		return nil, why
	}
	d.classes.at = at
	return &stage.Correction{
		Cal:        found.cal,
		Rows:       found.N,
		Moved:      found.moved,
		P:          found.Fit.P,
		Assumption: found.Assumption,
		Digest:     found.digest,
	}, ""
}
