package model

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// score scores a pane's sampled rows with the calibrator in force at each row's event time, as a server that follows
// the calibrators would have. It does not feed back into the shards' statistics.
func (t *stepper) score(k *keyState, in *stage.Pane) (stage.Scored, error) {
	v := t.version
	newest, since := stage.Scored{}, []*acc.SampleRow(nil) // rows that the newest calibrator serves
	out := stage.Scored{}
	sc := stage.NewScorer(k.K)
	if k.Slice == "" && k.K <= detect.MaxClasses {
		in.ByClass = make(detect.Pane, k.K*detect.ClassBands)
	}
	for i := range in.Rows {
		row := &in.Rows[i]
		f, to := v.At(row.TS, row.ID), out
		if f != nil && f == v.Newest() {
			to, since = newest, append(since, row)
		}
		pane := pipeline.PaneIndex(row.TS, t.cfg.Pane)
		if k.Slice != "" {
			pane = t.cfg.Turns.Span(pane)
		}
		set := to[pane]
		if set == nil {
			var err error
			if set, err = t.env.NewSums(k.K); err != nil {
				return nil, err
			}
			to[pane] = set
		}
		if err := sc.Add(set, f, row); err != nil {
			return nil, err
		}
		if in.ByClass != nil {
			sc.AddClass(in.ByClass, row)
		}
	}
	if err := t.addSince(k, since, newest); err != nil {
		return nil, err
	}
	for pane, set := range newest {
		if out[pane] == nil {
			out[pane] = set
		} else if err := out[pane].Merge(set); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addSince adds rows that the newest calibrator serves, and their sums as it scores them, to the sums since it took
// force.
func (t *stepper) addSince(k *keyState, rows []*acc.SampleRow, scored stage.Scored) error {
	if len(rows) == 0 {
		return nil
	}
	if f := t.version.Newest(); k.Since.Revision != f.Revision {
		k.Since = stage.SinceInForce{Revision: f.Revision}
	}
	var calibrated []*acc.Set
	for _, set := range sorted(scored) { // full sums refuse the last ones
		calibrated = append(calibrated, set)
	}
	raw, err := t.env.NewSums(k.K)
	if err == nil {
		err = t.env.AddRaw(raw, rows)
	}
	if err != nil {
		return err
	}
	for _, to := range []struct {
		sums *acc.Packed
		sets []*acc.Set
	}{{&k.Since.Raw, []*acc.Set{raw}}, {&k.Since.Calibrated, calibrated}} {
		sums, _, err := t.env.Summaries(k.K)
		if err != nil {
			return err
		}
		err = sums.Pack(to.sums, func(s *acc.Summary) error {
			for _, set := range to.sets {
				if err := t.env.Fitted(s.AddLabelled(set), set.LabelledRows()); err != nil {
					return err
				}
			}
			return nil
		})
		if err := t.env.Fitted(err, int64(len(rows))); err != nil {
			return err
		}
	}
	return nil
}
