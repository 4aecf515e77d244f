package model

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline/record"
)

// newSums returns an empty set without a sample: windows keep sums, the key keeps the rows.
func newSums(cfg *ModelConfig, k int) (*acc.Set, error) {
	c := cfg.Acc
	c.K, c.SampleRows, c.SampleBytes = k, 0, 0
	return acc.New(c)
}

// checkShape refuses sets of another configuration: they could not be merged with what comes later.
func checkShape(s *acc.Set, want acc.Config) error {
	if s != nil && s.Config() != want {
		return fmt.Errorf("statistics are of %+v, the configuration's of %+v (stats or sample changed since)", s.Config(), want)
	}
	return nil
}

// CountOverRange counts labelled rows that a window could not take because its 64-bit sums are full (2^31 rows).
const CountOverRange = "rows_over_range"

// mergeInto merges set into dst; a full dst is left as it is and the rows are counted.
func (t *ModelTask) mergeInto(dst, set *acc.Set) error {
	err := dst.Merge(set)
	if errors.Is(err, acc.ErrOverflow) {
		t.counts.Add(CountOverRange, set.LabelledRows())
		return nil
	}
	return err
}

func lagOf(s *acc.Set) record.Lag {
	if s.LabelledRows() == 0 {
		return record.Lag{}
	}
	l := &s.Labelled.Lag
	return record.Lag{Mean: l.Mean(), P50: l.Quantile(.5), P90: l.Quantile(.9), P99: l.Quantile(.99)}
}

// addBins adds the reliability bins of a set's labelled rows.
func addBins(dst *[]metric.Bin, n *int64, s *acc.Set, m int) error {
	if s.LabelledRows() == 0 {
		return nil
	}
	b, err := s.Labelled.MSP.Bins(m)
	if err != nil {
		return err
	}
	*dst = plusBins(*dst, b)
	*n += s.LabelledRows()
	return nil
}
