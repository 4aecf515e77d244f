package drift

import (
	"errors"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
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
	classes   classDrift
	packed    []byte // all of it, at rest; the fields before are empty then
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	if t.cfg == nil || k.Slice != "" && !t.cfg.Slices {
		return nil
	}
	d := &State{stage: t, key: k, classes: classDrift{k: k.K}}
	k.Estimator, k.Corrector = d, d
	k.Shows = append(k.Shows, d.show)
	return d
}

// Observe implements stage.KeyState. It updates the class counts and adds a label pane to the reference.
func (d *State) Observe(in *stage.Pane) error {
	d.wake()
	s := d.stage.cfg
	if err := d.q.follow(d.key); err != nil {
		return err
	}
	if in.CountsClasses() {
		if err := d.classes.follow(d.key, len(in.Rows)); err != nil {
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
func (t *Stage) Close(c *stage.Closing) error {
	for _, k := range c.Keys {
		if d, ok := k.State.(*State); ok {
			d.rest()
		}
	}
	return nil
}

var packer stage.Packer

// rest packs the state of a key that is new until it is needed.
func (d *State) rest() {
	if !d.key.IsNew() || d.packed != nil {
		return
	}
	b, err := d.AppendState(nil)
	if err != nil {
		panic("drift: " + err.Error()) // memory takes everything
	}
	*d = State{stage: d.stage, key: d.key, classes: classDrift{k: d.classes.k}, packed: packer.Pack(b)}
}

// wake brings the state back.
func (d *State) wake() {
	if d.packed == nil {
		return
	}
	in := binenc.NewReader(packer.Unpack(d.packed))
	d.packed = nil
	if err := errors.Join(d.RestoreState(&in, nil), in.Close()); err != nil {
		panic("drift: " + err.Error()) // what this process has packed itself
	}
}

// Open implements stage.KeyState.
func (d *State) Open() bool { return false }

// Merge implements stage.KeyState. It does nothing: a reference covers the rows of its own slice only and ends with it.
func (d *State) Merge(stage.KeyState) error { return nil }

// Confidence implements stage.Estimator.
func (d *State) Confidence(c float64) float64 {
	d.wake()
	return d.q.at(c)
}

// Reference implements stage.Estimator.
func (d *State) Reference() (right, rows float64, full bool) {
	d.wake()
	for _, n := range d.ref.outcome[1] {
		right += n
	}
	return right, d.ref.labelled, d.ref.labelledFull(d.stage.cfg)
}

// Collect implements stage.Corrector.
func (d *State) Collect(in *stage.Pane, rows int64) (now *acc.ClassCounts, err error) {
	d.wake()
	defer d.rest()
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
	d.wake()
	return d.classes.at
}

// Correct implements stage.Corrector.
func (d *State) Correct(now *acc.ClassCounts, alpha float64, at int64) (*stage.Correction, string) {
	d.wake()
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
