package model

import (
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/pipeline"
)

// score scores a pane's sampled rows with the calibrator in force at each row's event time, as a server that follows
// the calibrators would have. It does not feed back into the shards' statistics.
func (t *stepper) score(k *keyState, in *stage.Pane) (stage.Scored, error) {
	v := t.version
	out := stage.Scored{}
	sc := stage.NewScorer(k.K)
	if k.Slice == "" && k.K <= detect.MaxClasses {
		in.ByClass = make(detect.Pane, k.K*detect.ClassBands)
	}
	var since []*acc.SampleRow
	for i := range in.Rows {
		row := &in.Rows[i]
		pane := pipeline.PaneIndex(row.TS, t.cfg.Pane)
		set := out[pane]
		if set == nil {
			var err error
			if set, err = t.env.NewSums(k.K); err != nil {
				return nil, err
			}
			out[pane] = set
		}
		f := v.At(row.TS, row.ID)
		if err := sc.Add(set, f, row); err != nil {
			return nil, err
		}
		if in.ByClass != nil {
			sc.AddClass(in.ByClass, row)
		}
		if f != nil && f == v.Newest() {
			since = append(since, row)
		}
	}
	return out, t.addSince(k, since, sc)
}

// addSince adds rows that the newest calibrator serves to the sums since it took force.
func (t *stepper) addSince(k *keyState, rows []*acc.SampleRow, sc *stage.Scorer) error {
	if len(rows) == 0 {
		return nil
	}
	f := t.version.Newest()
	if k.Since.Revision != f.Revision {
		k.Since = stage.SinceInForce{Revision: f.Revision}
	}
	for _, to := range []struct {
		sums *acc.Packed
		cal  *stage.InForce
	}{{&k.Since.Raw, nil}, {&k.Since.Calibrated, f}} {
		set, err := t.env.NewSums(k.K)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := sc.Add(set, to.cal, row); err != nil {
				return err
			}
		}
		sums, _, err := t.env.Summaries(k.K)
		if err != nil {
			return err
		}
		add := func(s *acc.Summary) error { return s.AddLabelled(set) }
		if err := t.env.Fitted(sums.Pack(to.sums, add), int64(len(rows))); err != nil {
			return err
		}
	}
	return nil
}
