package window

import (
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// seedOf returns the seed of the intervals of a pane. All signals and windows share it: those that hold the same rows
// have the same intervals.
func seedOf(k *stage.Key, in *stage.Pane) uint64 { return k.Seed("windows", in.Index) }

// intervals are the latest. Windows that hold the same rows share theirs: all do at first, those of a slice with few
// rows for hours.
type intervals struct {
	made [16]madeInterval
	next int
}

type madeInterval struct {
	bins []metric.Bin
	seed uint64
	is   metric.Interval
}

// of is metric.Resample.
func (v *intervals) of(bins []metric.Bin, resamples int, seed uint64) metric.Interval {
	for i := range v.made {
		if m := &v.made[i]; m.seed == seed && slices.Equal(m.bins, bins) {
			return m.is
		}
	}
	m := &v.made[v.next]
	v.next = (v.next + 1) % len(v.made)
	*m = madeInterval{bins, seed, metric.Resample(bins, resamples, seed)}
	return m.is
}

// metrics computes the metrics of a set's labelled rows. A new metric is a field of record.Metrics, set here, a tile of
// the page (web/assets/js/tiles.js), a gauge of collectMetrics in sinks/metrics, and a line of docs/metrics.md. In
// files it is a field of Report in calib/metric, which Evaluate sets, and one of its Values. A calibration error is one
// of UncertaintyKeys, too.
func (t *Stage) metrics(set *acc.Set, seed uint64) (record.Metrics, error) {
	l := set.Labelled
	m := record.Metrics{N: set.LabelledRows()}
	if m.N == 0 {
		return m, nil
	}
	if err := t.topLabel(&m, &l.MSP, seed); err != nil {
		return m, err
	}
	m.Accuracy, m.MeanConfidence = stage.Number(l.Scores.Accuracy()), stage.Number(l.Scores.MeanConfidence())
	m.NLL, m.Brier = stage.Number(l.Scores.NLL()), stage.Number(l.Scores.Brier())
	cw, cwL2 := l.ClassWise.ECE()
	m.CWECE, m.CWECEL2 = stage.Number(cw), stage.Number(cwL2)
	m.AURC = stage.Number(l.MSP.AURC())
	soft := l.Soft.Sums()
	m.SBECEBin, m.SBECELB = stage.Number(metric.SBECEBin(soft, 2)), stage.Number(metric.SBECELB(soft))
	return m, nil
}

// detail adds the soft-bin sums and the binned CDF.
func (t *Stage) detail(m *record.Metrics, set *acc.Set) error {
	if m.N == 0 {
		return nil
	}
	soft := set.Labelled.Soft.Sums()
	m.SoftBins = &record.SoftBins{Temperature: t.env.Acc.SoftTemperature, S: soft.S, UC: soft.UC, UA: soft.UA,
		UC2: soft.UC2}
	return t.cdf(m, &set.Labelled.MSP)
}

// topLabel fills the metrics that follow from the confidence grid.
func (t *Stage) topLabel(m *record.Metrics, g *acc.Grid, seed uint64) error {
	bins, err := g.Bins(t.env.Bins)
	if err != nil {
		return err
	}
	iv := t.latest.of(bins, t.env.Resamples, seed)
	m.ECE, m.ECEL2, m.MCE = stage.Number(metric.ECE(bins)), stage.Number(metric.ECEL2(bins)),
		stage.Number(metric.MCE(bins))
	m.ECENull, m.ECENullHi, m.ECELo, m.ECEHi = stage.Number(iv.Null), stage.Number(iv.NullHi), stage.Number(iv.Lo),
		stage.Number(iv.Hi)
	for i, b := range bins {
		ob := record.Bin{Lo: float64(i) / float64(t.env.Bins), Hi: float64(i+1) / float64(t.env.Bins), N: b.N}
		if b.N > 0 {
			ob.Conf, ob.Acc = b.SumC/b.W, b.SumA/b.W
			ob.AccLo, ob.AccHi = metric.Wilson(ob.Acc*float64(b.N), float64(b.N))
		}
		m.Bins = append(m.Bins, ob)
	}
	for _, n := range t.cfg.ExtraBins {
		b, err := g.Bins(n)
		if err != nil {
			return err
		}
		if m.ECEByBins == nil {
			m.ECEByBins = map[string]float64{}
		}
		m.ECEByBins[strconv.Itoa(n)] = metric.ECE(b)
	}
	return nil
}

// cdf adds the binned CDF Ĝ_ν at the edges of its bins.
func (t *Stage) cdf(m *record.Metrics, g *acc.Grid) error {
	h, err := g.CDFCounts(metric.CDFBins)
	if err != nil {
		return err
	}
	c := &record.CDF{Nu: t.cfg.CDFNu}
	c.Grid, c.G = metric.CDFCurve(h, t.cfg.CDFNu)
	m.CDF = c
	return nil
}

// served computes the metrics of the confidences that the model served, for rows that carry them.
func (t *Stage) served(set *acc.Set, seed uint64) (*record.Metrics, error) {
	if set.Labelled == nil {
		return nil, nil
	}
	g := &set.Labelled.Served
	n, _ := g.Total()
	if n == 0 {
		return nil, nil
	}
	m := &record.Metrics{N: n, Accuracy: stage.Number(g.Accuracy()), MeanConfidence: stage.Number(g.MeanConfidence()),
		AURC: stage.Number(g.AURC())}
	return m, t.topLabel(m, g, seed)
}

func lagOf(s *acc.Set) record.Lag {
	if s.LabelledRows() == 0 {
		return record.Lag{}
	}
	l := &s.Labelled.Lag
	return record.Lag{Mean: l.Mean(), P50: l.Quantile(.5), P90: l.Quantile(.9), P99: l.Quantile(.99)}
}
