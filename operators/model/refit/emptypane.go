package refit

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

// Labels may come in bulk: a batch an hour. A refit must not wait for the next batch with what it has of this one. So
// in label panes without rows
//
//   - fits that are due are collected, and decided by the rows that were kept from them
//   - a refit on alarm begins though few rows are from after the alarm's start. Alarms are dated by the quickest labels
//     (stage.Key.LabelDelay); of a batch those are its last rows, and the others show the error as well. The rows since
//     the change are then those since the temperature of all labels since that start has gained, in the order of the
//     predictions.
//
// Where labels flow there are no such panes, or not for so long.

// emptyPanes is the least number of label panes without rows after which labels are long in coming. There must be as
// many as it took from the start of the alarm to the latest labels, too.
const emptyPanes = 6

// StepEmpty ends a label pane without rows of a version.
func StepEmpty(s *State, in *stage.Pane) error {
	s.recount(in.End)
	if s.run.fitting() && in.Index >= s.run.due && s.pin == nil {
		if err := s.stepRun(in); err != nil {
			return err
		}
		return s.corrections.serve(in)
	}
	cfg, k := &s.stage.cfg, s.whole()
	_, firing := k.FiringSince()
	if s.run != nil || s.pin != nil || !firing || !cfg.OnAlarm || cfg.Method == MethodNone || cfg.Method == "" ||
		s.stage.env.Maturity.On() {
		return nil
	}
	n, first, last := 0, int64(math.MaxInt64), int64(math.MinInt64)
	for row := range k.ShowFiring() {
		n++
		first, last = min(first, row.LabelTS), max(last, row.LabelTS)
	}
	if n < max(cfg.FreshRows, 1) {
		return nil
	}
	first, last = pipeline.PaneIndex(first, s.stage.env.Pane), pipeline.PaneIndex(last, s.stage.env.Pane)
	if in.Index != last+max(emptyPanes, last-first) { // it is tried once
		return nil
	}
	rows := make([]acc.SampleRow, 0, n) // copies
	for row := range k.ShowFiring() {
		rows = append(rows, *row)
	}
	since, err := s.changeIn(rows)
	if err != nil {
		return err
	}
	return s.onAlarm(in, since)
}

// changeIn estimates from which prediction time on rows were as they are: since a temperature of all of them has
// gained, by CUSUM.
func (p *publisher) changeIn(rows []acc.SampleRow) (since int64, err error) {
	slices.SortFunc(rows, stage.CompareRows)
	t, err := temperatureOf(rows, p.version.K)
	if err != nil {
		return 0, err
	}
	was, err := p.bounded().appendNLLs(nil, inForce(p.version), rows)
	if err != nil {
		return 0, err
	}
	now, err := p.bounded().nllsOf(t, rows)
	if err != nil {
		return 0, err
	}
	gain := 0.0
	for i := range rows {
		if gain <= 0 {
			gain, since = 0, rows[i].TS
		}
		gain += float64(rows[i].W) * (was[i] - now[i])
	}
	return since, nil
}
