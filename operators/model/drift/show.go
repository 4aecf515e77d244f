package drift

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// show adds to the snapshot of a time window what can be said before labels come.
func (d *State) show(out *record.Snapshot, w *stage.Window) error {
	if w.Rows || w.Raw.Seen == nil {
		return nil
	}
	u, err := d.unlabelled(w.Raw, w.Start)
	out.Unlabelled = u
	return err
}

func (d *State) unlabelled(raw *acc.Set, start int64) (*record.Unlabelled, error) {
	t, spec := d.stage, d.stage.cfg
	n, _ := raw.Seen.Total()
	out := &record.Unlabelled{Rows: n}
	// A window that shares rows with the reference would be compared with itself, so it is not compared.
	apart := d.ref.seenFull(spec) && start >= d.ref.to
	if apart {
		out.ReferenceRows, out.ReferenceTo = int64(d.ref.seen), record.At(d.ref.to)
		for i, g := range stage.ScoreGrids(raw.Seen) {
			now := make([]float64, stage.ScoreBins)
			if err := stage.AddCounts(now, g); err != nil {
				return nil, err
			}
			// Compare fails if there are too few rows yet.
			if dist, err := unlabelled.Compare(d.ref.scores[i], now, spec.Alpha); err == nil {
				if out.Distances == nil {
					out.Distances = map[string]record.Distances{}
				}
				out.Distances[stage.ScoreNames[i]] = distancesOf(dist)
			}
		}
	}
	est := []unlabelled.Estimate{unlabelled.ConfidenceBased(raw.Seen.MSP.Groups(), d.q.at, t.env.Bins)}
	if d.ref.labelledFull(spec) {
		now := make([]float64, stage.ScoreBins)
		if err := stage.AddCounts(now, &raw.Seen.MSP); err != nil {
			return nil, err
		}
		if e, err := unlabelled.CorrectnessShift(d.ref.outcome[1], d.ref.outcome[0], now); err == nil {
			est = append(est, e)
		}
	}
	for i := range est {
		out.Estimates = append(out.Estimates, estimateOf(&est[i], raw))
	}
	d.showClasses(raw, apart, out)
	return out, nil
}
