package engine

import (
	"time"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// ReplayResult is what `replay --json` prints.
type ReplayResult struct {
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

// Result is what the replay came to.
func (r *Replay) Result(took time.Duration) (ReplayResult, error) {
	res := ReplayResult{Seconds: took.Seconds(), Alerts: r.History.Alerts("", "", 1000),
		Calibrators: r.History.Calibrators("", "", 1000)}
	var err error
	if res.ByModel, err = r.Model.Hash(); err != nil {
		return res, err
	}
	res.StateHash = CombineHashes(res.ByModel)
	for _, s := range r.Shards {
		s.Report(true, true)()
	}
	r.Model.Report(true, true)()
	tasks, _ := r.Statuses()
	res.Counts = countTree(tasks)
	res.Rows, _ = res.Counts[pipeline.CountPredictions].(int64)
	res.Labelled, _ = res.Counts[pipeline.CountLabelled].(int64)
	res.RowsPerSec = float64(res.Rows) / res.Seconds
	for _, info := range r.History.Series() {
		if s, ok := r.History.Latest(info.SnapshotKey); ok {
			res.Snapshots = append(res.Snapshots, s)
		}
	}
	return res, nil
}
