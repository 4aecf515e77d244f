package rule

import (
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// smoothCells is the number of cells that smECE is computed from.
const smoothCells = 180

// The sums start with the moments of NLL: Σw, Σ w·x, Σ w·x². Then each bin has binSize numbers: rows, Σw, Σ w·c, Σ w·a.
const (
	binSize     = 4
	momentsSize = 3
)

// labelledSize is the length of the sums of labelled rows.
func (s *Config) labelledSize(bins int) int {
	n := momentsSize + binSize*bins
	if s.cells() {
		n += binSize * smoothCells
	}
	return n
}

// cells reports whether the measure needs the fine cells.
func (s *Config) cells() bool { return s.Measure == SmECE || s.Measure == Confidence }

// addLabelled adds the labelled rows of a set to sums.
func (s *Config) addLabelled(sums []float64, set *acc.Set, m int) error {
	at := momentsSize
	for _, n := range []int{m, smoothCells} {
		if at == len(sums) {
			break
		}
		bins, err := set.Labelled.MSP.Bins(n)
		if err != nil {
			return err
		}
		for _, b := range bins {
			sums[at], sums[at+1], sums[at+2], sums[at+3] = sums[at]+float64(b.N), sums[at+1]+b.W, sums[at+2]+b.SumC,
				sums[at+3]+b.SumA
			at += binSize
		}
	}
	return nil
}

// binsOf reads bins from sums.
func binsOf(sums []float64) []metric.Bin {
	bins := make([]metric.Bin, len(sums)/binSize)
	for j := range bins {
		b := sums[j*binSize:]
		bins[j] = metric.Bin{N: int64(b[0]), W: b[1], SumC: b[2], SumA: b[3]}
	}
	return bins
}

// referenceWindow converts sums to the input of package reference.
func (s *Config) referenceWindow(sums []float64, m int) reference.Window {
	w := reference.Window{NLL: reference.Moments{W: sums[0], Sum: sums[1], Square: sums[2]},
		Bins: binsOf(sums[momentsSize : momentsSize+binSize*m])}
	if s.cells() {
		for _, b := range binsOf(sums[momentsSize+binSize*m:]) {
			if b.N > 0 {
				w.Cells = append(w.Cells, b)
			}
		}
	}
	return w
}

// labelled is the rule window of kinds that use labelled rows by bin. With alarm.matured the rows of a prediction pane
// wait until they are old enough.
type labelled struct {
	*context
	window
	waiting stage.Slots[block]
}

func (r *labelled) size() int { return r.cfg.labelledSize(r.env.Bins) }

// Observe adds the labelled rows of a pane. For signal calibrated these are the sampled rows, calibrated by the
// calibrators in force.
func (r *labelled) Observe(in *stage.Pane) (rows int64, err error) {
	if r.cfg.Signal == stage.SignalRaw {
		for _, c := range in.Cells {
			if err := r.addSet(in, c.PredictionPane, c.Set); err != nil {
				return rows, err
			}
		}
	} else {
		for _, p := range slices.Sorted(maps.Keys(in.Scored)) {
			if err := r.addSet(in, p, in.Scored[p]); err != nil {
				return rows, err
			}
		}
	}
	if r.cfg.Measure == NLL {
		if err := r.addMoments(in); err != nil {
			return rows, err
		}
	}
	for _, slot := range r.waiting.Take(r.env.Maturity, in.Index) {
		b := slot.Sum
		r.add(r.cfg, b.rows, b.sums)
		if b.classes != nil && b.rows > 0 {
			if err := r.addClasses(b.classes); err != nil {
				return rows, err
			}
		}
		rows += b.rows
	}
	return rows, nil
}

// at returns the block that the rows of a prediction pane count in, nil if they are too late.
func (r *labelled) at(in *stage.Pane, predictionPane int64) *block {
	if !r.env.Maturity.On() {
		predictionPane = in.Index
	}
	b := r.waiting.At(r.env.Maturity, predictionPane, in.Index)
	if b != nil && b.sums == nil {
		b.sums = make([]float64, r.size())
	}
	return b
}

// addSet adds the labelled rows of a set.
func (r *labelled) addSet(in *stage.Pane, predictionPane int64, set *acc.Set) (err error) {
	if set.LabelledRows() == 0 {
		return nil
	}
	b := r.at(in, predictionPane)
	if b == nil {
		return nil
	}
	b.rows += set.LabelledRows()
	if r.cfg.Measure == CWECE {
		if b.classes == nil {
			if b.classes, err = acc.NewClassWise(r.key.K, r.env.Acc.Bins); err != nil {
				return err
			}
		}
		if err := b.classes.Merge(set.Labelled.ClassWise); err != nil {
			return err
		}
	}
	return r.cfg.addLabelled(b.sums, set, r.env.Bins)
}

// addMoments adds the NLL of the sampled rows of a pane.
func (r *labelled) addMoments(in *stage.Pane) error {
	sc := stage.NewScorer(r.key.K)
	for i := range in.Rows {
		row := &in.Rows[i]
		b := r.at(in, pipeline.PaneIndex(row.TS, r.env.Pane))
		if b == nil {
			continue
		}
		var cal calibrator.Calibrator
		if f := r.key.Version.At(row.TS, row.ID); f != nil && r.cfg.Signal == stage.SignalCalibrated {
			cal = f.Cal
		}
		score, err := sc.Row(cal, row, math.Inf(1))
		if err != nil {
			return err
		}
		w, nll := float64(row.W), score.NLL
		b.sums[0], b.sums[1], b.sums[2] = b.sums[0]+w, b.sums[1]+w*nll, b.sums[2]+w*nll*nll
	}
	return nil
}

// options holds the seed for the resampling of an evaluation.
func (r *labelled) options(pane int64) reference.Options {
	return reference.Options{Resamples: r.env.Resamples, Seed: r.key.Seed(r.cfg.Signal+r.cfg.Measure, pane)}
}

// Append appends the rule window, then what waits.
func (r *labelled) Append(dst []byte) []byte {
	dst = r.append(dst)
	if r.cfg.Measure == CWECE {
		dst = appendClasses(dst, r.blocks)
	}
	return r.waiting.Append(dst, func(dst []byte, b *block) []byte {
		dst = b.append(dst)
		if r.cfg.Measure == CWECE {
			dst = appendClasses(dst, []block{*b})
		}
		return dst
	})
}

// Restore reads what Append wrote.
func (r *labelled) Restore(in *binenc.Reader) {
	k, m := r.key.K, r.env.Acc.Bins
	r.restore(in, r.size())
	if r.cfg.Measure == CWECE && in.Err() == nil {
		restoreClasses(in, r.blocks, k, m)
	}
	r.waiting.Restore(in, func(b *block) {
		b.restore(in, r.size())
		if r.cfg.Measure == CWECE && in.Err() == nil {
			of := []block{*b}
			restoreClasses(in, of, k, m)
			*b = of[0]
		}
	})
}
