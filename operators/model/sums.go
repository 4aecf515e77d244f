package model

import (
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline/record"
)

func lagOf(s *acc.Set) record.Lag {
	if s.LabelledRows() == 0 {
		return record.Lag{}
	}
	l := &s.Labelled.Lag
	return record.Lag{Mean: l.Mean(), P50: l.Quantile(.5), P90: l.Quantile(.9), P99: l.Quantile(.99)}
}
