package main

import (
	"time"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// replayResult is what `replay --json` prints.
type replayResult struct {
	StateHash   string              `json:"state_hash"`
	ByModel     map[string]string   `json:"state_hash_by_model"`
	Rows        int64               `json:"rows"`
	Labelled    int64               `json:"labelled"`
	Seconds     float64             `json:"seconds"`
	RowsPerSec  float64             `json:"rows_per_second"`
	Counts      map[string]any      `json:"counts"`
	Alerts      []record.Alert      `json:"alerts"`
	Calibrators []record.Calibrator `json:"calibrators"`
	Snapshots   []record.Snapshot   `json:"snapshots"`
}

// result is what the replay came to.
func (r *replay) result(took time.Duration) (replayResult, error) {
	res := replayResult{Seconds: took.Seconds(), Alerts: r.history.Alerts("", "", 1000), Calibrators: r.history.Calibrators("", "", 1000)}
	var err error
	if res.ByModel, err = r.model.Hash(); err != nil {
		return res, err
	}
	res.StateHash = combineHashes(res.ByModel)
	for _, s := range r.shards {
		s.Report(true, true)()
	}
	r.model.Report(true, true)()
	tasks, _ := r.statuses()
	res.Counts = countTree(tasks)
	res.Rows, _ = res.Counts[pipeline.CountPredictions].(int64)
	res.Labelled, _ = res.Counts[pipeline.CountLabelled].(int64)
	res.RowsPerSec = float64(res.Rows) / res.Seconds
	for _, info := range r.history.Series() {
		if s, ok := r.history.Latest(info.SnapshotKey); ok {
			res.Snapshots = append(res.Snapshots, s)
		}
	}
	return res, nil
}
