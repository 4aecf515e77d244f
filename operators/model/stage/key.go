package stage

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Key is what every stage knows of one key: a model version, or one of its slices.
type Key struct {
	Version   *Version
	Slice     string // "" = the whole
	K         int
	Labelled  int64 // rows so far
	LateRows  int64
	Recent    Recent
	Sample    []acc.SampleRow                             // latest rows, in order of label pane
	Added     int64                                       // rows that Sample got in this process
	Since     SinceInForce                                // sampled rows since the newest calibrator took force
	Ledger    [32]byte                                    // a hash chain of what was published for the key
	Alerts    []*Alert                                    // alarms, then rules
	Estimator Estimator                                   // of predictions without labels; nil = none
	Corrector Corrector                                   // of shares of classes; nil = none
	Snapshots map[string][]byte                           // the latest of every window, as published
	Shows     []func(s *record.Snapshot, w *Window) error // what stages add to a snapshot
	Ended     []Ended                                     // of a checkpoint that was read, until they are published
}

// Seed is the seed of a resampling: a function of what is resampled, so that a repeat has the same numbers.
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
	k.Sample = append(k.Sample, rows...)
	k.Added += int64(len(rows))
	if over := len(k.Sample) - limit; over > 0 {
		k.Sample = slices.Delete(k.Sample, 0, over)
	}
}

// SinceInForce are the sampled rows that came after the newest calibrator took force: as they came, and as it
// makes them. It is the evidence that the calibrator helps, on rows that it was not fitted on.
type SinceInForce struct {
	Revision        int
	Raw, Calibrated *acc.Set
}

// Estimator is what estimates of predictions without labels need.
type Estimator interface {
	// Confidence maps a raw confidence to that of the calibrator in force.
	Confidence(c float64) float64
	// Reference is the labelled reference: right rows, and all; full is false while it takes rows.
	Reference() (right, rows float64, full bool)
}

// Corrector proposes class weights where the shares of the classes have moved.
type Corrector interface {
	// Look counts the predictions of a pane, and returns the counts once so many rows have come since the last look.
	Look(in *Pane, rows int64) (now *acc.ClassCounts, err error)
	// Corrected is the end of the pane of the latest correction, 0 = none.
	Corrected() int64
	// Correct returns class weights on the calibrator in force for the shares of now, by a test at level alpha; nil,
	// and why, where it needs none, or none is known. at is the end of the pane.
	Correct(now *acc.ClassCounts, alpha float64, at int64) (c *Correction, why string)
}

// Correction is class weights on the calibrator in force, and why.
type Correction struct {
	Cal        *calibrator.ClassWeights
	Rows       int64   // predictions that it is by
	Moved      float64 // total variation of the shares that the weights are for from the reference's
	P          float64 // of the test of the assumption
	Assumption string
	Digest     string // of what the weights are made of
}

// Window is a window at the moment of its snapshot.
type Window struct {
	Rows       bool     // the latest rows; false: a span of prediction time
	Start, End int64    // event time
	Raw        *acc.Set // its statistics
}
