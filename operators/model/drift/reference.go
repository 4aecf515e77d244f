package drift

import (
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
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

// estimateOf returns the record of an estimate, together with its miss against the labelled rows of the window, whose
// accuracy is carried over to all predictions.
func estimateOf(e *unlabelled.Estimate, raw *acc.Set, carry float64) record.Estimate {
	out := record.Estimate{Method: e.Method, Assumption: e.Assumption, Rejected: e.Rejected, ECE: stage.Number(e.ECE)}
	if e.Rejected {
		return out
	}
	out.Accuracy, out.Lo, out.Hi = &e.Accuracy, &e.Lo, &e.Hi
	if n := raw.LabelledRows(); n > 0 {
		like := *e
		like.Accuracy -= carry
		m := like.Against(raw.Labelled.MSP.Accuracy()*float64(n), float64(n))
		out.Miss = &record.Miss{Labelled: n, Difference: m.Difference, SE: m.SE, Z: m.Z}
	}
	return out
}

// carry returns by how much the calibrated confidence of a window's predictions is above that of its labelled rows: so
// much more often are they right where labels come for some confidences only, or sooner. A labelled row counts as the
// mean of the predictions in its bin, since windows keep no mean confidence of labelled rows in so fine bins.
func (d *State) carry(raw *acc.Set) (float64, error) {
	if raw.LabelledRows() == 0 {
		return 0, nil
	}
	all, err := raw.Seen.MSP.Bins(stage.ScoreBins)
	if err != nil {
		return 0, err
	}
	labelled, err := raw.Labelled.MSP.Bins(stage.ScoreBins)
	if err != nil {
		return 0, err
	}
	var sum, weight [2]float64
	for j, b := range all {
		if b.W == 0 {
			continue
		}
		q := d.Confidence(b.Conf())
		for i, w := range [2]float64{b.W, labelled[j].W} {
			sum[i], weight[i] = sum[i]+w*q, weight[i]+w
		}
	}
	if weight[0] == 0 || weight[1] == 0 {
		return 0, nil
	}
	return sum[0]/weight[0] - sum[1]/weight[1], nil
}

// confidenceMap approximates the calibrator in force as a function of the raw confidence. For each bin of the raw
// confidence it holds the mean calibrated probability of the predicted class, over the key's latest sampled rows: those
// of before a change have the same confidences with other scores below them, and would be mapped elsewhere. Without a
// calibrator the map is the identity.
type confidenceMap struct {
	revision int
	bins     []float64 // NaN in a bin without rows
	fresh    int64     // sampled rows since it was built
	since    int64     // event time from which rows have about this map: that of the calibrators before was another
	turned   bool      // since is of this pane
}

const (
	// mapRows is of how many rows the map is, and after how many it is built anew; of a new calibrator, half as many.
	mapRows = 1000
	// sameMap is the mean change of confidences up to which calibrators have the same map.
	sameMap = .01
)

// follow builds the map again when another calibrator is in force, and when its rows are of old.
func (m *confidenceMap) follow(k *stage.Key, in *stage.Pane) error {
	m.turned = false
	f := k.Version.Newest()
	if f == nil || len(k.Sample) == 0 {
		return nil
	}
	m.fresh += int64(len(in.Rows))
	if f.Revision == m.revision && m.fresh < mapRows {
		return nil
	}
	was := *m
	rows, err := m.build(k, f)
	if err != nil || f.Revision == was.revision {
		return err
	}
	change, all := 0.0, 0.0
	for j, n := range rows {
		if n > 0 {
			change, all = change+n*math.Abs(m.bins[j]-was.at(middle(j))), all+n
		}
	}
	m.fresh = mapRows / 2
	if change > sameMap*all {
		m.since, m.turned = f.From, true
	}
	return nil
}

// build builds the map of a calibrator, and returns the rows of each bin.
func (m *confidenceMap) build(k *stage.Key, f *stage.InForce) (rows []float64, err error) {
	sum, n := make([]float64, stage.ScoreBins), make([]float64, stage.ScoreBins)
	sc, q := stage.NewScorer(k.K), make([]float64, k.K)
	latest := k.Sample[max(0, len(k.Sample)-mapRows):]
	for i := range latest {
		raw, err := sc.Row(nil, &latest[i], math.Inf(1))
		if err != nil {
			return nil, err
		}
		if _, err := sc.Row(f.Cal, &latest[i], math.Inf(1)); err != nil {
			return nil, err
		}
		sc.Probs(q)
		j := metric.BinIndex(raw.Confidence, stage.ScoreBins)
		sum[j] += q[raw.Class]
		n[j]++
	}
	m.revision, m.bins, m.fresh = f.Revision, make([]float64, stage.ScoreBins), 0
	for j := range sum {
		if m.bins[j] = math.NaN(); n[j] > 0 {
			m.bins[j] = sum[j] / n[j]
		}
	}
	return n, nil
}

// append appends the map. Where there is one, the count of its bins is one more than that: those of old had no times.
func (m *confidenceMap) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(m.revision))
	if m.bins == nil {
		return binenc.AppendUvarint(dst, 0)
	}
	dst = binenc.AppendFloat64s(binenc.AppendUvarint(dst, stage.ScoreBins+1), m.bins...)
	return binenc.AppendVarint(binenc.AppendVarint(dst, m.fresh), m.since)
}

// restore reads what append wrote.
func (m *confidenceMap) restore(in *binenc.Reader) {
	*m = confidenceMap{revision: int(in.Uvarint())}
	n := in.Count(1, stage.ScoreBins+1)
	if n != 0 && n < stage.ScoreBins {
		in.Failf("%d bins of the calibrator's map, allowed %d", n, stage.ScoreBins)
	}
	for range min(n, stage.ScoreBins) {
		m.bins = append(m.bins, in.Float64())
	}
	if n > stage.ScoreBins {
		m.fresh, m.since = in.Varint(), in.Varint()
	}
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
	return d.appendClasses(d.past.append(d.q.append(dst)))
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
	d.q.restore(in)
	d.past.restore(in)
	if in.Err() == nil && in.Len() > 0 {
		if err := d.restoreClasses(in); err != nil {
			return err
		}
	}
	return in.Err()
}
