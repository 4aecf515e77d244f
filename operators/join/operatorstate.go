package join

import (
	"fmt"

	"github.com/plumbline/plumbline/pipeline"
)

// Stage is the operator as a shard registers it.
func (j *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "join", Operator: j, Version: 1, Files: j, Close: j.Close}
}

// Close removes what is on disk; a checkpoint is all that stays of it.
func (j *Operator) Close() error { return j.w.close() }

// State implements pipeline.Operator: everything that waits, or is remembered.
func (j *Operator) State() pipeline.State { return j }

// AppendState implements pipeline.State.
func (j *Operator) AppendState(dst []byte) ([]byte, error) { return j.w.AppendState(dst) }

// Files implements pipeline.FileState.
func (j *Operator) Files() []pipeline.File { return j.w.Files() }

// RestoreState implements pipeline.State, for a state without files.
func (j *Operator) RestoreState(src []byte) error {
	return j.RestoreFiles(src, func(name, _ string) error { return fmt.Errorf("no file %s", name) })
}

// RestoreFiles implements pipeline.FileState.
func (j *Operator) RestoreFiles(src []byte, fetch pipeline.Fetch) error {
	if err := j.w.restore(src, fetch); err != nil {
		return err
	}
	// The counts have been restored before; those of checkpoint version 1 did not have these.
	n := j.counts.All()
	j.counted = tally{predictions: int(n[pipeline.CountWaiting]), labels: int(n[pipeline.CountWaitingLabels])}
	j.countWaiting()
	if n := j.w.dropped; n > 0 {
		j.counts.Add(CountDroppedSlices, n)
		j.w.log.Warn("slice columns: waiting predictions lose the values of removed columns; they count in all rows "+
			"as before", "values", n)
		j.w.dropped = 0
	}
	return nil
}
