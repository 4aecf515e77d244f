package drift

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// shown brings what estimates of class shares need up to date, where classes are counted. show itself leaves the state
// as it is.
func (d *State) shown() {
	if d.counted() || d.classes.soft.fresh > 0 {
		_, _ = d.classes.current(d.key, shownShare) // the error is of a sample that is too small yet: shifts says so
	}
}

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
	spec := d.stage.cfg
	n, _ := raw.Seen.Total()
	out := &record.Unlabelled{Rows: n}
	// A window that shares rows with the reference would be compared with itself, so it is not compared.
	apart := d.ref.seenFull(spec) && start >= d.ref.to
	if apart {
		out.ReferenceRows, out.ReferenceTo = int64(d.ref.seen), record.At(d.ref.to)
		for i, g := range stage.ScoreGrids(raw.Seen) {
			now := make([]float64, stage.ScoreBins)
			if err := g.AddRows(now); err != nil {
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
	now := make([]float64, stage.ScoreBins)
	if err := raw.Seen.MSP.AddRows(now); err != nil {
		return nil, err
	}
	est := d.estimates(raw.Seen.MSP.Groups(), now)
	if start < d.calibrated().since {
		est = est[1:] // its rows had several maps, and which had which is not known here
	}
	if len(est) > 1 {
		r := unlabelled.RangeOf(d.past.blocks, d.past.stale(d), est...)
		out.Range = &record.Range{Lo: r.Lo, Hi: r.Hi, Margin: r.Margin, Blocks: r.Past, Known: r.Known,
			Rejected: r.Rejected, Stale: r.Stale}
	}
	carry, err := d.carry(raw)
	if err != nil {
		return nil, err
	}
	for i := range est {
		out.Estimates = append(out.Estimates, estimateOf(&est[i], raw, carry))
	}
	d.showClasses(raw, apart, carry, out)
	return out, nil
}
