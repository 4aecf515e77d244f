package drift

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// reference is a reference window: predictions by confidence score, and labelled rows by outcome and confidence.
type reference struct {
	scores         [3][]float64
	seen, labelled float64
	outcome        [2][]float64 // index 0: wrong, 1: right
	to             int64        // end of the last label pane that added predictions
	classes        classRef
}

// grow allocates the bins, which a reference that takes no rows has not.
func (r *reference) grow() {
	if r.scores[0] != nil {
		return
	}
	for i := range r.scores {
		r.scores[i] = make([]float64, stage.ScoreBins)
	}
	for i := range r.outcome {
		r.outcome[i] = make([]float64, stage.ScoreBins)
	}
}

// encoded are the bins as a checkpoint has them.
func (r *reference) encoded() [5][]float64 {
	none := noBins[:]
	out := [5][]float64{none, none, none, none, none}
	if r.scores[0] != nil {
		out = [5][]float64{r.scores[0], r.scores[1], r.scores[2], r.outcome[0], r.outcome[1]}
	}
	return out
}

// noBins are the bins of a reference without rows.
var noBins [stage.ScoreBins]float64

func (r *reference) seenFull(s *Config) bool { return r.seen >= float64(s.ReferenceRows) }
func (r *reference) labelledFull(s *Config) bool {
	return r.labelled >= float64(s.ReferenceRows)
}
func (r *reference) full(s *Config) bool { return r.seenFull(s) && r.labelledFull(s) }

// add adds whole panes until there are enough predictions and enough labelled rows.
func (r *reference) add(s *Config, in *stage.Pane) error {
	r.grow()
	seen, labelled := !r.seenFull(s), !r.labelledFull(s)
	for _, c := range in.Cells {
		if seen && c.Set.Seen != nil {
			for i, g := range stage.ScoreGrids(c.Set.Seen) {
				if err := g.AddRows(r.scores[i]); err != nil {
					return err
				}
			}
			n, _ := c.Set.Seen.Total()
			r.seen += float64(n)
			r.to = in.End
			var err error
			if r.classes.said, err = plusClasses(r.classes.said, c.Set); err != nil {
				return err
			}
		}
		if labelled && c.Set.LabelledRows() > 0 {
			err := c.Set.Labelled.MSP.RowsByOutcome(r.outcome[0], r.outcome[1])
			if err != nil {
				return err
			}
			r.labelled += float64(c.Set.LabelledRows())
			if r.classes.confused, err = plusClasses(r.classes.confused, c.Set); err != nil {
				return err
			}
		}
	}
	return nil
}

func distancesOf(d unlabelled.Distances) record.Distances {
	one := func(d unlabelled.Distance) record.Distance {
		return record.Distance{Value: d.Value, Null: d.Null, Threshold: d.Threshold, P: d.P}
	}
	return record.Distances{KS: one(d.KS), Wasserstein: one(d.Wasserstein), PSI: one(d.PSI),
		JensenShannon: one(d.JensenShannon), Bins: d.Bins}
}

// estimateOf returns the record of an estimate, together with its miss against the labelled rows of the window.
func estimateOf(e *unlabelled.Estimate, raw *acc.Set) record.Estimate {
	out := record.Estimate{Method: e.Method, Assumption: e.Assumption, Accuracy: e.Accuracy, Lo: e.Lo, Hi: e.Hi,
		ECE: stage.Number(e.ECE)}
	if n := raw.LabelledRows(); n > 0 {
		m := e.Against(raw.Labelled.MSP.Accuracy()*float64(n), float64(n))
		out.Miss = &record.Miss{Labelled: n, Difference: m.Difference, SE: m.SE, Z: m.Z}
	}
	return out
}

// confidenceMap approximates the calibrator in force as a function of the raw confidence. For each bin of the raw
// confidence it holds the mean calibrated probability of the predicted class, over the key's sampled rows at the time
// the calibrator came. Without a calibrator the map is the identity.
type confidenceMap struct {
	revision int
	bins     []float64 // NaN in a bin without rows
}

// follow builds the map again when another calibrator is in force.
func (m *confidenceMap) follow(k *stage.Key) error {
	f := k.Version.Newest()
	if f == nil || f.Revision == m.revision || len(k.Sample) == 0 {
		return nil
	}
	sum, n := make([]float64, stage.ScoreBins), make([]float64, stage.ScoreBins)
	z, p, q := make([]float64, k.K), make([]float64, k.K), make([]float64, k.K)
	for i := range k.Sample {
		for j, x := range k.Sample[i].Z {
			z[j] = float64(x)
		}
		raw, _, err := stage.Evaluate(nil, z, p, int(k.Sample[i].Y))
		if err != nil {
			return err
		}
		if _, _, err := stage.Evaluate(f.Cal, z, q, int(k.Sample[i].Y)); err != nil {
			return err
		}
		j := metric.BinIndex(raw.Conf, stage.ScoreBins)
		sum[j] += q[raw.Arg]
		n[j]++
	}
	m.revision, m.bins = f.Revision, make([]float64, stage.ScoreBins)
	for j := range sum {
		if m.bins[j] = math.NaN(); n[j] > 0 {
			m.bins[j] = sum[j] / n[j]
		}
	}
	return nil
}

// at returns the calibrated confidence of c. It interpolates linearly between the middles of bins with rows, and is
// constant beyond the outermost of them.
func (m *confidenceMap) at(c float64) float64 {
	if m.bins == nil {
		return c
	}
	lo, hi := -1, -1
	for j, q := range m.bins {
		if math.IsNaN(q) {
			continue
		}
		if middle(j) <= c {
			lo = j
		} else {
			hi = j
			break
		}
	}
	switch {
	case lo < 0 && hi < 0:
		return c
	case lo < 0:
		return m.bins[hi]
	case hi < 0:
		return m.bins[lo]
	}
	f := (c - middle(lo)) / (middle(hi) - middle(lo))
	return m.bins[lo]*(1-f) + m.bins[hi]*f
}

func middle(j int) float64 { return (float64(j) + .5) / stage.ScoreBins }

// AppendState implements stage.KeyState.
func (d *State) AppendState(dst []byte) ([]byte, error) {
	for _, r := range []*reference{&d.ref, &d.next} {
		dst = binenc.AppendVarint(dst, r.to)
		for _, h := range r.encoded() {
			for _, n := range h {
				dst = binenc.AppendUvarint(dst, uint64(n))
			}
		}
	}
	dst = binenc.AppendUvarint(dst, uint64(d.q.revision))
	dst = binenc.AppendUvarint(dst, uint64(len(d.q.bins)))
	dst = binenc.AppendFloat64s(dst, d.q.bins...)
	return d.appendClasses(d.past.append(dst))
}

// RestoreState implements stage.KeyState.
func (d *State) RestoreState(in *binenc.Reader, _ *acc.Decoder) error {
	for _, r := range []*reference{&d.ref, &d.next} {
		*r = reference{to: in.Varint()}
		r.grow()
		for i, h := range r.encoded() {
			for j := range h {
				h[j] = float64(in.Int("count", 0, 1<<53))
				switch {
				case i == 0:
					r.seen += h[j]
				case i > 2:
					r.labelled += h[j]
				}
			}
		}
	}
	d.q.revision = int(in.Uvarint())
	for range in.Count(8, stage.ScoreBins) {
		d.q.bins = append(d.q.bins, in.Float64())
	}
	if n := len(d.q.bins); in.Err() == nil && n != 0 && n != stage.ScoreBins {
		return fmt.Errorf("%d bins of the calibrator's map, allowed %d", n, stage.ScoreBins)
	}
	d.past.restore(in)
	if in.Err() == nil && in.Len() > 0 {
		if err := d.restoreClasses(in); err != nil {
			return err
		}
	}
	return in.Err()
}
