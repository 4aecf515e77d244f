package model

import (
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// What is in force is in the task's state, and readers know it from topics that may lose it: retention deletes the
// record of an alert that fires for long, and a topic may be deleted and made again. Both would be as if nothing were
// in force. These records are repeats, which decide nothing and are in no ledger.

// FireAgain publishes the latest records of the alerts that fire once more, and returns their number. A task does so
// once in each generation of its group: those who read the alerts topic from its start may do so because of the same
// change.
func FireAgain(t *Task) (n int) {
	for _, v := range t.versions() {
		for _, k := range sorted(v.keys) {
			if k.alerted {
				k.wake(&t.fleet)
			}
			for _, a := range k.Alerts {
				if a.State != stage.Firing || a.Last.Record == nil {
					continue
				}
				t.emit(nil, pipeline.Message{Stream: pipeline.StreamAlerts, Key: []byte(k.AlertKey(a.Rule)),
					Value: a.Last.Text(), Time: a.Last.Record.At.UnixNano()})
				n++
			}
		}
	}
	return n
}

// ServeAgain publishes the calibrators in force that their topic lacks, and returns the number of records. lacks is
// asked for the key and the revision of each.
func ServeAgain(t *Task, lacks func(key string, revision int) bool) (n int, err error) {
	for _, v := range t.versions() {
		more, err := refit.Again(v.refit, lacks)
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}
