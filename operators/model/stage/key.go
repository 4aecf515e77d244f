package stage

import (
	"crypto/sha256"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Key is what every stage knows of one key. A key is a model version or one of its slices.
type Key struct {
	Version   *Version
	Slice     string // "" = all rows of the version
	Silent    string // as Version.Silent, of a slice
	K         int
	Labelled  int64 // labelled rows so far
	LateRows  int64
	Began     int64 // event time of the first label pane with labels
	Recent    Recent
	Sample    []acc.SampleRow // latest sampled rows, in the order of label panes
	Aged      bool            // Sample has rows of a Maturity only: it does not depend on how soon their labels came
	Added     int64           // rows added to Sample since this process started
	Since     SinceInForce    // sampled rows since the newest calibrator took force
	Ledger    [32]byte        // hash chain of everything published for the key; of snapshots, which
	Alerts    []*Alert        // alarms, then rules
	Estimator Estimator       // estimates from predictions without labels; nil = none
	Corrector Corrector       // corrections for moved class shares; nil = none
	// Covered returns about how many predictions of a span of event time there were, and how many of these have labels:
	// of the slides of a time window that the span touches; 0 without such a window.
	Covered func(from, to int64) (Coverage, error)
	// Snapshots are the latest of every window.
	Snapshots Snapshots
	Shows     []func(s *record.Snapshot, w *Window) error // what other stages add to a snapshot
	// Shown are called before a time window is shown, or would be (Env.Unseen): Shows must leave the state as it is.
	Shown []func()
	// Grown are called before the pane with which the key stops being new.
	Grown []func() error
	// Ended are alerts that a restored checkpoint ended and that are not published yet.
	Ended []Ended
	// Delays are kept by the stage that asks for Biased; nil = the sample alone tells.
	Delays *Delays

	outcomes outcomes
}

// Chain adds an output to the ledger.
func (k *Key) Chain(m pipeline.Message) {
	h := sha256.New()
	h.Write(k.Ledger[:])
	h.Write([]byte(m.Stream))
	h.Write(m.Key)
	h.Write(m.Value)
	h.Sum(k.Ledger[:0])
}

// Seed returns the seed of a resampling. It depends only on what is resampled, so a repeat gives the same numbers.
func (k *Key) Seed(signal string, pane int64) uint64 {
	h := fnv.New64a()
	for _, s := range []string{k.Version.Model, k.Version.Name, k.Slice, signal, strconv.FormatInt(pane, 10)} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// Keep appends a pane's rows to the sample and forgets the oldest.
func (k *Key) Keep(rows []acc.SampleRow, limit int) {
	k.Added += int64(len(rows))
	if over := len(rows) - limit; over > 0 {
		rows = apart(rows[over:])
	}
	if over := len(k.Sample) + len(rows) - limit; over > 0 {
		k.Sample = slices.Delete(k.Sample, 0, over)
	}
	if n := len(k.Sample) + len(rows); n > cap(k.Sample) { // no more than will be used
		room := min(n+n/4, limit)
		if n < NewRows {
			room = n
		}
		k.Sample = append(make([]acc.SampleRow, 0, max(n, room)), k.Sample...)
	}
	k.Sample = append(k.Sample, rows...)
}

// LabelDelay is how long the labels that came since an event time took at least: what 1 in 20 of the sampled rows took
// at most, 0 without such rows. What labels show from a time on began so much earlier with the predictions, since the
// quickest labels are the first to show it.
func (k *Key) LabelDelay(since int64) int64 {
	var delays []int64
	for i := range k.Sample {
		if row := &k.Sample[i]; row.LabelTS >= since {
			delays = append(delays, row.LabelTS-row.TS)
		}
	}
	if len(delays) == 0 {
		return 0
	}
	slices.Sort(delays)
	return max(0, delays[len(delays)/20])
}

// Resumed is the start of the pane of the first sampled prediction from an event time on, or that time where there is
// none: what began while nothing came, began with the next row.
func (k *Key) Resumed(since, pane int64) int64 {
	first := int64(math.MaxInt64)
	for i := range k.Sample {
		if ts := k.Sample[i].TS; ts >= since {
			first = min(first, ts)
		}
	}
	if first == math.MaxInt64 {
		return since
	}
	return max(since, pipeline.PaneIndex(first, pane)*pane)
}

// apart returns a copy of rows that shares no memory with others.
func apart(rows []acc.SampleRow) []acc.SampleRow {
	n := 0
	for i := range rows {
		n += len(rows[i].Z)
	}
	rows, z := slices.Clone(rows), make([]float32, 0, n)
	for i := range rows {
		from := len(z)
		z = append(z, rows[i].Z...)
		rows[i].Z = z[from:len(z):len(z)]
	}
	return rows
}

// SinceInForce holds the sampled rows since the newest calibrator took force, once as they came and once calibrated.
// These rows were not used for the fit, so they show whether the calibrator helps.
type SinceInForce struct {
	Revision        int
	Raw, Calibrated acc.Packed
}

// Estimator provides what estimates from predictions without labels need.
type Estimator interface {
	// Confidence maps a raw confidence to the one that the calibrator in force gives.
	Confidence(c float64) float64
	// Mapped returns the event time from which rows have that map, and whether it is another one than before the pane.
	Mapped() (since int64, turned bool)
	// Reference returns the labelled reference: its correct rows and all of its rows. full is false while the reference
	// still takes rows.
	Reference() (right, rows float64, full bool)
}

// Corrector proposes class weights when the class shares have moved.
type Corrector interface {
	// Collect counts the predictions of a pane. When at least the given number of rows has come since it last returned
	// counts, it returns the counts; otherwise nil.
	Collect(in *Pane, rows int64) (now *acc.ClassCounts, err error)
	// Corrected returns the end of the pane of the latest correction; 0 = none.
	Corrected() int64
	// Correct returns class weights on top of the calibrator in force for the class shares of now, by a test at level
	// alpha. It returns nil and a reason if no weights are needed or none can be found. at is the end of the pane.
	Correct(now *acc.ClassCounts, alpha float64, at int64) (c *Correction, why string)
}

// Correction is class weights on top of the calibrator in force, with the figures that justify them.
type Correction struct {
	Cal  *calibrator.ClassWeights
	Rows int64 // predictions that the weights were computed from
	// Total variation distance between the class shares of these predictions and those of the reference.
	Moved      float64
	P          float64 // p-value of the test of the label-shift assumption
	Assumption string
	Digest     string // digest of the inputs of the weights
}

// Coverage is how many predictions there were, how many of these have labels, and the predictions by class; nil where
// these are not counted.
type Coverage struct {
	Predictions, Labelled int64
	Said                  *acc.ClassCounts // to be read before the next snapshot
}

// Window describes a window when its snapshot is taken.
type Window struct {
	Rows  bool     // true: the latest rows; false: a span of prediction time
	Start int64    // event time
	Raw   *acc.Set // statistics of the signal raw
}
