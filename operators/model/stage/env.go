package stage

import (
	"errors"
	"log/slog"
	"math"
	"net/url"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
)

// Env is what the stages of one model task share: the configuration that is nobody's own, and where results go.
type Env struct {
	Pane       int64      // length of a pane, ns
	Acc        acc.Config // of the shards' statistics, but for K
	Bins       int        // of reliability diagrams and of the ECE
	Resamples  int        // of the null expectation and the interval of an ECE
	FinalAfter int64      // ns after the end of a window by time at which its rows have all come

	DiagramWindow string // the window that alerts link to

	Counts *pipeline.Counts
	Log    *slog.Logger
	Emit   func(k *Key, m pipeline.Message) // publishes an output of a key; nil: of none, and in no ledger
	Whole  func(v *Version) *Key            // the key of all rows of a version, made where there is none
}

// DigestPrefix names the hash of digests in records.
const DigestPrefix = "sha256:"

// CountOverRange counts labelled rows that a window could not take because its 64-bit sums are full (2^31 rows).
const CountOverRange = "rows_over_range"

// NewSums returns an empty set for K classes without a sample: windows keep sums, the key keeps the rows.
func (e *Env) NewSums(k int) (*acc.Set, error) {
	c := e.Acc
	c.K, c.SampleRows, c.SampleBytes = k, 0, 0
	return acc.New(c)
}

// MergeInto merges set into dst. A dst that is full stays as it is, and the rows are counted.
func (e *Env) MergeInto(dst, set *acc.Set) error {
	err := dst.Merge(set)
	if errors.Is(err, acc.ErrOverflow) {
		e.Counts.Add(CountOverRange, set.LabelledRows())
		return nil
	}
	return err
}

// Diagram is the page's path at the reliability diagram of a key at a moment.
func (e *Env) Diagram(k *Key, at string) string {
	return "/?" + url.Values{"model": {k.Version.Model}, "version": {k.Version.Name}, "slice": {k.Slice},
		"window": {e.DiagramWindow}, "at": {at}}.Encode()
}

// FiniteOrZero returns x, or 0 where JSON has no such number.
func FiniteOrZero(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// Number returns x, or nil where it is not finite.
func Number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
