package model

import (
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// snapshots publishes the windows that are due at a pane's end.
func (t *ModelTask) snapshots(v *version, k *keyState, in *stage.Pane) error {
	for _, w := range k.windows {
		for _, view := range w.due(t, in) {
			s, err := t.snapshot(v, k, w, view, in)
			if err != nil {
				return err
			}
			m, err := pipeline.NewMessage(pipeline.StreamSnapshots, v.Model+"/"+v.Name+"/"+k.Slice, in.End, s)
			if err != nil {
				return err
			}
			w.last = m.Value
			t.env.Emit(&k.Key, m)
		}
	}
	return nil
}

func (t *ModelTask) snapshot(v *version, k *keyState, w *window, view view, in *stage.Pane) (*record.Snapshot, error) {
	raw, err := t.env.NewSums(k.K)
	if err != nil {
		return nil, err
	}
	cal, err := t.env.NewSums(k.K)
	if err != nil {
		return nil, err
	}
	s := &record.Snapshot{Schema: 1, Model: v.Model, Version: v.Name, Slice: k.Slice, At: pipeline.Format(in.End),
		Window: record.Window{Name: w.spec.Name, Kind: w.spec.Kind, Start: pipeline.Format(view.start), End: pipeline.Format(view.end), Final: view.final}}
	for _, b := range view.parts {
		s.Late += b.late
		if b.raw != nil {
			if err := t.env.MergeInto(raw, b.raw); err != nil {
				return nil, err
			}
		}
		if b.cal != nil {
			if err := t.env.MergeInto(cal, b.cal); err != nil {
				return nil, err
			}
		}
	}
	s.Labelled = raw.LabelledRows()
	if w.spec.Kind == "time" {
		n, conf := raw.SeenRows()
		s.Predictions, s.Confidence = n, stage.Number(conf)
		s.Coverage = stage.Number(float64(s.Labelled) / float64(n))
		if s.Unlabelled, err = t.unlabelled(k, raw, view); err != nil {
			return nil, err
		}
	}
	s.Lag = lagOf(raw)
	if s.Raw, err = t.metrics(v, k, "raw", raw, in.Index, true); err != nil {
		return nil, err
	}
	if s.Calibrated, err = t.metrics(v, k, "calibrated", cal, in.Index, false); err != nil {
		return nil, err
	}
	if s.Served, err = t.served(v, k, raw, in.Index); err != nil {
		return nil, err
	}
	if k.Slice == "" {
		s.Online = v.refit.online.shown()
	}
	if column, value, _ := strings.Cut(k.Slice, "="); value == slicing.Other && v.heavy[column] != nil {
		s.PooledValues, s.PooledMore = int64(len(v.heavy[column].pooled)), v.heavy[column].full()
	}
	s.InForce, err = t.inForce(v, k, in)
	return s, err
}

// inForce describes the calibrator in force, with what it did since on the key's sampled rows.
func (t *ModelTask) inForce(v *version, k *keyState, in *stage.Pane) (*record.InForce, error) {
	f := v.Newest()
	if f == nil {
		return nil, nil
	}
	out := &record.InForce{Version: f.Revision, Method: f.Cal.Method(), EffectiveFrom: pipeline.Format(f.From)}
	if tmp, ok := f.Cal.(calibrator.Temperature); ok {
		out.Temperature = tmp.T()
	}
	if k.Since.Revision != f.Revision || k.Since.Raw == nil {
		return out, nil
	}
	var err error
	if out.Raw, err = t.metrics(v, k, "since-raw", k.Since.Raw, in.Index, false); err != nil {
		return nil, err
	}
	out.Calibrated, err = t.metrics(v, k, "since-calibrated", k.Since.Calibrated, in.Index, false)
	return out, err
}

// metrics reads the metrics of a set's labelled rows; detail adds the soft-bin sums and the binned CDF.
func (t *ModelTask) metrics(v *version, k *keyState, signal string, set *acc.Set, pane int64, detail bool) (record.Metrics, error) {
	l := set.Labelled
	m := record.Metrics{N: set.LabelledRows()}
	if m.N == 0 {
		return m, nil
	}
	if err := topLabel(&m, &l.MSP, &t.cfg, k.Seed(signal, pane)); err != nil {
		return m, err
	}
	m.Accuracy, m.MeanConfidence = stage.Number(l.MSP.Accuracy()), stage.Number(l.MSP.MeanConfidence())
	m.NLL, m.Brier = stage.Number(l.Scores.NLL()), stage.Number(l.Scores.Brier())
	cw, cwL2 := l.ClassWise.ECE()
	m.CWECE, m.CWECEL2 = stage.Number(cw), stage.Number(cwL2)
	m.AURC = stage.Number(l.MSP.AURC())
	soft := l.Soft.Sums()
	m.SBECEBin, m.SBECELB = stage.Number(metric.SBECEBin(soft, 2)), stage.Number(metric.SBECELB(soft))
	if detail {
		m.SoftBins = &record.SoftBins{Temperature: t.cfg.Acc.SoftTemperature, S: soft.S, UC: soft.UC, UA: soft.UA, UC2: soft.UC2}
		return m, t.cdf(&m, &l.MSP)
	}
	return m, nil
}

// topLabel fills what follows from the confidence grid.
func topLabel(m *record.Metrics, g *acc.Grid, cfg *ModelConfig, seed uint64) error {
	bins, err := g.Bins(cfg.Bins)
	if err != nil {
		return err
	}
	iv := metric.Resample(bins, cfg.Resamples, seed)
	m.ECE, m.ECEL2, m.MCE = stage.Number(metric.ECE(bins)), stage.Number(metric.ECEL2(bins)), stage.Number(metric.MCE(bins))
	m.ECENull, m.ECENullHi, m.ECELo, m.ECEHi = stage.Number(iv.Null), stage.Number(iv.NullHi), stage.Number(iv.Lo), stage.Number(iv.Hi)
	for i, b := range bins {
		ob := record.Bin{Lo: float64(i) / float64(cfg.Bins), Hi: float64(i+1) / float64(cfg.Bins), N: b.N}
		if b.N > 0 {
			ob.Conf, ob.Acc = b.SumC/b.W, b.SumA/b.W
			ob.AccLo, ob.AccHi = metric.Wilson(ob.Acc*float64(b.N), float64(b.N))
		}
		m.Bins = append(m.Bins, ob)
	}
	for _, n := range cfg.ExtraBins {
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
func (t *ModelTask) cdf(m *record.Metrics, g *acc.Grid) error {
	h, err := g.CDFCounts(metric.CDFBins)
	if err != nil {
		return err
	}
	c := &record.CDF{Nu: t.cfg.CDFNu}
	c.Grid, c.G = metric.CDFCurve(h, t.cfg.CDFNu)
	m.CDF = c
	return nil
}

// served reads the metrics of the confidences that were actually served, where rows have them.
func (t *ModelTask) served(v *version, k *keyState, set *acc.Set, pane int64) (*record.Metrics, error) {
	if set.Labelled == nil {
		return nil, nil
	}
	g := &set.Labelled.Served
	n, _ := g.Total()
	if n == 0 {
		return nil, nil
	}
	m := &record.Metrics{N: n, Accuracy: stage.Number(g.Accuracy()), MeanConfidence: stage.Number(g.MeanConfidence()), AURC: stage.Number(g.AURC())}
	return m, topLabel(m, g, &t.cfg, k.Seed("served", pane))
}
