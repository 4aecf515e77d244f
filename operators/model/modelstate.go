package model

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
)

// taskState is the checkpoint section with the task's models.
type taskState struct{ t *Task }

// modelSection has the version of the state of all stages. A new field of a state raises it; where older bytes are read
// still, Oldest stays, and testdata keeps a state of the version before (TestOlderStates). docs/format.md has a list.
// Then TestStateFormats with -update writes the states of the new version.
func modelSection(t *Task) pipeline.Section {
	return pipeline.Section{Name: "model", Version: 15, Oldest: 14, State: taskState{t}}
}

// AppendState implements pipeline.State.
func (s taskState) AppendState(dst []byte) ([]byte, error) {
	t := s.t
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, t.next), t.cfg.Pane)
	dst = stage.AppendDictionary(t.shards.append(dst))
	dst = binenc.AppendUvarint(dst, uint64(len(t.models)))
	var err error
	for name, m := range sorted(t.models) {
		if dst, err = m.append(dst, t.cfg.table, true); err != nil {
			return dst, fmt.Errorf("model %s: %w", name, err)
		}
	}
	return dst, nil
}

// restoring is what reads a checkpoint.
type restoring struct {
	snapshots *stage.SnapshotReader
	decoder   *acc.Decoder
}

// RestoreState implements pipeline.State.
func (s taskState) RestoreState(src []byte) error {
	t := s.t
	r := binenc.NewReader(src)
	t.next = r.Varint()
	if err := pipeline.CheckPaneLength(r.Varint(), t.cfg.Pane); err != nil {
		return err
	}
	t.shards.restore(&r)
	from := &restoring{stage.ReadDictionary(&r), acc.NewDecoder()}
	for range r.Count(3, binenc.MaxItems) {
		m := t.newModel("")
		if err := t.restoreModel(m, &r, from); err != nil {
			return err
		}
		t.models[m.name] = m
	}
	if err := r.Close(); err != nil {
		return err
	}
	t.continueFits()
	t.endSwitchedOff()
	return nil
}

// continueFits starts the fits that were under way when the state was saved.
func (f *fleet) continueFits() {
	for _, m := range f.models {
		for _, v := range m.versions {
			v.refit.Continue()
		}
		if m.next < m.reached {
			f.turns.wait(m.name, !m.fitting())
		}
	}
}

// append appends the state; without snapshots it is what the state hash is of, for ledgers have all that was published.
func (m *model) append(dst []byte, table []namedStage, snapshots bool) ([]byte, error) {
	dst = binenc.AppendString(dst, m.name)
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, m.next), m.reached)
	dst = m.orders.Append(dst)
	dst = binenc.AppendUvarint(dst, uint64(len(m.versions)))
	var err error
	for name, v := range sorted(m.versions) {
		dst = binenc.AppendString(dst, name)
		dst = sumsOf(v.Shape).Append(dst)
		if dst, err = v.refit.Append(dst); err != nil {
			return dst, fmt.Errorf("version %q: %w", name, err)
		}
		dst = binenc.AppendUvarint(dst, uint64(len(v.Calibrators)))
		for _, f := range v.Calibrators {
			dst = f.Append(dst)
		}
		dst = binenc.AppendUvarint(dst, uint64(len(v.keys)))
		for slice, k := range sorted(v.keys) {
			if dst, err = k.append(dst, table, snapshots); err != nil {
				return dst, fmt.Errorf("version %q slice %q: %w", name, slice, err)
			}
		}
	}
	return m.heads.Append(dst)
}

func (f *fleet) restoreModel(m *model, r *binenc.Reader, from *restoring) error {
	m.name = r.String(binenc.MaxName)
	m.next, m.reached = r.Varint(), r.Varint()
	if err := m.orders.Restore(r); err != nil {
		return fmt.Errorf("model %s: %w", m.name, err)
	}
	for range r.Count(4, binenc.MaxItems) {
		name, shape := r.String(binenc.MaxName), acc.ReadConfig(r)
		if r.Err() != nil {
			break
		}
		v, err := f.versionOf(m, name, shape.K)
		if err == nil {
			err = sumconfig.Check(shape, v.Shape)
		}
		if err == nil {
			err = f.restoreVersion(v, r, from)
		}
		if err != nil {
			return fmt.Errorf("model %s version %q: %w", m.name, name, err)
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return m.heads.Restore(r)
}

// restoreVersion reads refits, calibrators and keys of a version, whose name and shape the caller has read.
func (f *fleet) restoreVersion(v *version, r *binenc.Reader, from *restoring) error {
	if err := v.refit.Restore(r); err != nil {
		return err
	}
	for range r.Count(4, binenc.MaxItems) {
		c := &stage.InForce{}
		if err := c.Restore(r); err != nil {
			return err
		}
		if !calibrator.Fits(c.Cal, v.K) {
			return fmt.Errorf("calibrator revision %d is not one for K = %d", c.Revision, v.K)
		}
		v.Calibrators = append(v.Calibrators, c)
	}
	for range r.Count(4, binenc.MaxItems) {
		slice := r.String(binenc.MaxName)
		if r.Err() != nil {
			break
		}
		if err := f.restoreKey(v.key(slice, &f.cfg), r, from); err != nil {
			return fmt.Errorf("slice %q: %w", slice, err)
		}
	}
	return nil
}

// sumsOf returns the configuration of sums that keep no sample.
func sumsOf(shape acc.Config) acc.Config {
	shape.SampleRows = 0
	return shape
}
