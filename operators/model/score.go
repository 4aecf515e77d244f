package model

import (
	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// score scores a pane's sampled rows with the calibrator in force at each row's event time. This is what a server that
// follows the calibrators would have served. It does not feed back into the shards' statistics.
func (t *stepper) score(k *keyState, in *stage.Pane) (stage.Scored, error) {
	v := t.version
	out := stage.Scored{}
	sc := stage.NewScorer(k.K)
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
		if f == nil || f != v.Newest() {
			continue
		}
		if err := t.addSince(k, f, row, sc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (t *stepper) addSince(k *keyState, f *stage.InForce, row *acc.SampleRow, sc *stage.Scorer) error {
	if k.Since.Revision != f.Revision || k.Since.Raw == nil {
		raw, err := t.env.NewSums(k.K)
		if err != nil {
			return err
		}
		cal, err := t.env.NewSums(k.K)
		if err != nil {
			return err
		}
		k.Since = stage.SinceInForce{Revision: f.Revision, Raw: raw, Calibrated: cal}
	}
	if err := sc.Add(k.Since.Raw, nil, row); err != nil {
		return err
	}
	return sc.Add(k.Since.Calibrated, f, row)
}
