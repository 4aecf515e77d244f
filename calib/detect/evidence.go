package detect

import (
	"cmp"
	"math"
	"slices"
)

// Evidence is what a detector knows at one pane, for people: why it raised an alarm, or how far it is from one.
type Evidence struct {
	Null            Null
	Epsilon         float64
	LogE, Threshold float64 // log Σ w R, and log 1/α: an alarm where LogE ≥ Threshold
	Pane            int64   // the last pane seen
	// Since is the last pane at which the cusum of the best-weighted expert was at 0, or the first pane of all: an
	// estimate of the last pane before the error began. No confidence is attached to it.
	Since int64
	// Direction is the sign of a - c that the best expert bet on: -1 overconfident, 1 underconfident, 0 both.
	Direction int
	Experts   []ExpertEvidence // the largest w·R, at most 5
	// Bins are all bins, ascending; of NullAccuracy one, whose confidence is the level that rows were compared with; of
	// NullClass the classes, without Lo, Hi and Long.
	Bins []BinEvidence
}

// ExpertEvidence is one expert's part.
type ExpertEvidence struct {
	Kind      Kind
	Direction int // as in Evidence; 0 for an adaptive expert
	Bin       int // of a local expert, else -1
	Share     float64
	CUSUM     float64 // log evidence since Since
	Since     int64
}

// BinEvidence is one bin's part. N, Confidence and Accuracy are of past rows, discounted by half every 1,000 rows
// (Recent) and every 8,000 (Long); NaN without rows. Where the detector has local experts (NullBin), LogE is the
// largest log evidence since its own Since against |a - c - β| ≤ ε in this bin alone, and Direction its sign; else 0.
type BinEvidence struct {
	Lo, Hi, Reference float64
	Recent, Long      BinMemory
	LogE              float64
	Direction         int
	Since             int64
}

// BinMemory are discounted means of a bin; Gap = Accuracy - Confidence - reference.
type BinMemory struct{ N, Confidence, Accuracy, Gap float64 }

const topExperts = 5

// Current returns what speaks against the null so far.
func (d *Detector) Current() *Evidence {
	e := &Evidence{Null: d.dict.spec.Null, Epsilon: d.dict.spec.Epsilon, LogE: d.LogE(), Threshold: d.Threshold(),
		Pane: d.last, Since: d.last,
		Bins: d.binEvidence()}
	for k, s := range d.state {
		if s.wealth == 0 {
			continue
		}
		x := &d.dict.experts[k]
		e.Experts = append(e.Experts, ExpertEvidence{Kind: x.kind, Direction: int(x.dir), Bin: x.bin,
			Share: math.Exp(s.wealth.log() + x.logWeight - e.LogE), CUSUM: s.cusum, Since: s.since})
	}
	slices.SortStableFunc(e.Experts, func(a, b ExpertEvidence) int { return cmp.Compare(b.Share, a.Share) })
	e.Experts = e.Experts[:min(topExperts, len(e.Experts))]
	if len(e.Experts) > 0 {
		e.Since, e.Direction = e.Experts[0].Since, e.Experts[0].Direction
	}
	return e
}

// Share returns the share of bin j among past rows, discounted by half every 8,000; 0 without rows. It is not for
// NullClass, which remembers fewer.
func (d *Detector) Share(j int) float64 {
	bins, all := d.past[len(d.past)-1], 0.0
	for i := range bins {
		all += bins[i].n
	}
	if all == 0 {
		return 0
	}
	return bins[j].n / all
}

// binEvidence returns the memory of every bin, and the best of its local experts.
func (d *Detector) binEvidence() []BinEvidence {
	out := make([]BinEvidence, len(d.past[0]))
	for j := range out {
		if d.dict.spec.Null == NullClass {
			out[j] = BinEvidence{Since: d.last, Recent: d.past[0][j].means(0)}
			continue
		}
		bias := d.dict.bins[j].bias
		m := float64(len(out))
		out[j] = BinEvidence{Lo: float64(j) / m, Hi: float64(j+1) / m, Reference: bias, Since: d.last,
			Recent: d.past[0][j].means(bias), Long: d.past[1][j].means(bias)}
	}
	for k, s := range d.state {
		x := &d.dict.experts[k]
		if x.kind != Local || s.cusum <= out[x.bin].LogE {
			continue
		}
		b := &out[x.bin]
		b.LogE, b.Direction, b.Since = s.cusum, int(x.dir), s.since
	}
	return out
}
