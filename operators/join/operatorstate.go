package join

import (
	"fmt"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join/store"
	"github.com/plumbline/plumbline/pipeline"
)

// Stage is the operator as a shard registers it. Version 1 of its state names all files by SHA-256.
func (j *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "join", Operator: j, Version: 2, Oldest: 1, Files: j, Close: j.Close,
		Take: func(from pipeline.Operator, mine func(arrowio.ID) bool) error {
			return take(j, from.(*Operator), mine)
		}}
}

// Close removes the files on disk. Only the checkpoint stays.
func (j *Operator) Close() error { return j.w.close() }

// State implements pipeline.Operator: everything that waits or is remembered.
func (j *Operator) State() pipeline.State { return j }

// AppendState implements pipeline.State.
func (j *Operator) AppendState(dst []byte) ([]byte, error) { return j.w.AppendState(dst) }

// Files implements pipeline.FileState.
func (j *Operator) Files() []pipeline.File { return j.w.Files() }

// RestoreState implements pipeline.State, for a state without files on disk.
func (j *Operator) RestoreState(src []byte) error {
	return j.RestoreFiles(src, func(name, _ string) error { return fmt.Errorf("no file %s", name) })
}

// RestoreFiles implements pipeline.FileState.
func (j *Operator) RestoreFiles(src []byte, fetch pipeline.Fetch) error {
	if err := j.w.restore(src, fetch); err != nil {
		return err
	}
	j.waiting.restored()
	j.waiting.publish(j.w.n)
	if n := j.w.dropped; n > 0 {
		j.counts.Add(CountDroppedSlices, n)
		j.w.log.Warn("slice columns: waiting predictions lose the values of removed columns; they count in all rows "+
			"as before", "values", n)
		j.w.dropped = 0
	}
	return nil
}

// take moves the rows of another join whose ids are mine into this one (pipeline.Stage), waiting and remembered ones.
// They come after the rows that are here, so some may stay beyond their wait until those before them leave.
func take(j, old *Operator, mine func(arrowio.ID) bool) error {
	j.waiting.restored()
	before := j.waiting.said
	if err := j.w.take(&old.w, mine); err != nil {
		return err
	}
	if err := j.settle(); err != nil {
		return err
	}
	j.counts.Add(pipeline.CountMoved, int64(j.w.n.predictions-before.predictions))
	j.counts.Add(pipeline.CountMovedLabels, int64(j.w.n.labels-before.labels))
	j.waiting.publish(j.w.n)
	return nil
}

// take appends the rows of another buffer whose ids are mine.
func (w *buffer) take(old *buffer, mine func(arrowio.ID) bool) error {
	w.sharedAt = max(w.sharedAt, old.sharedAt)
	for n := uint64(0); old.store != nil; n++ {
		var ok bool
		if n, ok = old.store.After(n, func(store.State) bool { return true }); !ok {
			break
		}
		row, err := old.store.Read(n)
		if err == nil && mine(row.ID) {
			err = w.takeRow(row, old.store.StateOf(n) != stateWaiting)
		}
		if err != nil {
			return err
		}
	}
	var row store.Row
	for e := range old.inOrder {
		if p := &old.entries[e]; mine(p.id) {
			old.encodeRow(e, &row)
			if err := w.takeRow(&row, p.used); err != nil {
				return err
			}
		}
	}
	if old.met == nil {
		return nil
	}
	return old.met.Each(func(id *store.ID, m store.Met) error {
		if !mine(*id) {
			return nil
		}
		defer w.forget()
		return w.remember((*arrowio.ID)(id), m.TS, arrowio.ModelKey(m.Key))
	})
}

func (w *buffer) takeRow(row *store.Row, used bool) error {
	e := w.add(row.ID, false)
	if err := w.decodeRow(e, row); err != nil {
		return err
	}
	p := &w.entries[e]
	p.used = used
	*w.n.of(p.label >= 0, used)++
	return w.spill()
}
