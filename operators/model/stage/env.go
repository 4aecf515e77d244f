package stage

import (
	"errors"
	"log/slog"
	"math"
	"net/url"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Env is what all stages of one model task share: configuration that belongs to no single stage, and the way out for
// results.
type Env struct {
	Pane       int64      // length of a pane, ns
	Acc        acc.Config // configuration of the shards' statistics, without K
	Bins       int        // bins of reliability diagrams and of the ECE
	Resamples  int        // resamples for the null expectation and the interval of an ECE
	FineSums   bool       // diagrams may have more than acc.CoarseBins bins
	SampleRows int        // sampled rows that the key of a whole version keeps
	Maturity   Maturity   // from when on they count in refits
	FinalAfter int64      // ns after the end of a time window at which all of its rows have come

	DiagramWindow string // the window that alerts link to
	Unseen        bool   // nobody reads snapshots: they are not made

	Counts *pipeline.Counts
	Log    *slog.Logger
	// Emit publishes an output of a key and chains it into the ledger of the key. A nil key has no ledger.
	Emit func(k *Key, m pipeline.Message)
	// Lost returns which losses of rows an interval of event time touches; nil = none.
	Lost func(start, end int64) *record.Lost
	// Whole returns the key of all rows of a version, and creates it if needed.
	Whole func(v *Version) *Key

	raw, calibrated acc.Summary // of Summaries

	open openSnapshots

	block  *acc.Block // of AddRaw, for blockK classes
	blockK int
	scores []float32
}

// PutSnapshot takes the latest snapshot of a window of a key, as published; where none is made, that there was one.
func (e *Env) PutSnapshot(k *Key, window string, text []byte) {
	if e.Unseen {
		k.Snapshots[window] = snapshot{text: []byte{}}
		return
	}
	e.open.put(k.Snapshots, window, text)
}

// Summaries returns two empty summaries for K classes, for raw and calibrated rows. All keys and stages share them, so
// they are valid until the next call.
func (e *Env) Summaries(k int) (raw, calibrated *acc.Summary, err error) {
	for _, s := range []*acc.Summary{&e.raw, &e.calibrated} {
		if err := s.Reshape(e.sums(k), e.FineSums); err != nil {
			return nil, nil, err
		}
	}
	return &e.raw, &e.calibrated, nil
}

// rawRows is how many rows AddRaw takes at a time, fewer where they have many classes: the memory stays, and a task's
// is bounded (docs/operations.md, Sizing).
const rawRows = 16

// AddRaw adds labelled rows of K classes to sums: the same numbers as those of Scorer.Add without a calibrator, for a
// third of the time, since the rows go through the kernels many at a time.
func (e *Env) AddRaw(set *acc.Set, rows []*acc.SampleRow) error {
	k := set.Settings().K
	if e.blockK != k {
		e.block, e.blockK = acc.NewBlock(k), k
	}
	most := min(rawRows, acc.BlockRows(k))
	all := make([]int32, 0, most)
	for part := range slices.Chunk(rows, most) {
		e.scores, all = e.scores[:0], all[:0]
		for _, row := range part {
			e.scores = append(e.scores, row.Z...)
		}
		e.block.Score(e.scores, false)
		for i, row := range part {
			if err := e.block.SetRow(i, int(row.Y), float64(row.W), row.LabelTS-row.TS, math.NaN()); err != nil {
				return err
			}
			all = append(all, int32(i))
		}
		if err := set.LabelRows(e.block, all); err != nil {
			return err
		}
	}
	return nil
}

// DigestPrefix is the prefix of digests in records. It names the hash function.
const DigestPrefix = "sha256:"

// CountOverRange counts labelled rows that a window refused because its 64-bit sums are full (2^31 rows).
const CountOverRange = "rows_over_range"

// NewSums returns an empty set for K classes that keeps no sample: windows keep sums, and the key keeps the rows.
func (e *Env) NewSums(k int) (*acc.Set, error) {
	return acc.New(e.sums(k))
}

// sums returns the configuration of sums of K classes without a sample.
func (e *Env) sums(k int) acc.Config {
	c := e.Acc
	c.K, c.SampleRows, c.SampleBytes = k, 0, 0
	return c
}

// Fitted returns the error of adding labelled rows to sums, and counts them in CountOverRange if the sums were full:
// these stay as they are.
func (e *Env) Fitted(err error, rows int64) error {
	if errors.Is(err, acc.ErrOverflow) {
		e.Counts.Add(CountOverRange, rows)
		return nil
	}
	return err
}

// MergeInto merges set into dst. If dst is full, it stays as it is and the rows are counted in CountOverRange.
func (e *Env) MergeInto(dst, set *acc.Set) error { return e.Fitted(dst.Merge(set), set.LabelledRows()) }

// Absorb adds packed sums of K classes to others. rows is the number of their labelled rows.
func (e *Env) Absorb(k int, dst, from *acc.Packed, rows int64) error {
	if dst.Empty() {
		*dst = *from
		return nil
	}
	if from.Empty() {
		return nil
	}
	s, _, err := e.Summaries(k)
	if err != nil {
		return err
	}
	return e.Fitted(s.Pack(dst, func(s *acc.Summary) error { return s.Unpack(from) }), rows)
}

// Diagram returns the path, on the page, of the reliability diagram of a key at a time.
func (e *Env) Diagram(k *Key, at record.Time) string {
	return "/?" + url.Values{"model": {k.Version.Model}, "version": {k.Version.Name}, "slice": {k.Slice},
		"window": {e.DiagramWindow}, "at": {at.String()}}.Encode()
}

// FiniteOrZero returns x, or 0 if x is not finite, which JSON cannot express.
func FiniteOrZero(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return x
}

// Number returns x, or nil if x is not finite.
func Number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
