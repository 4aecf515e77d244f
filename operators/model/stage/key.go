package stage

import (
	"hash/fnv"
	"strconv"

	"github.com/plumbline/plumbline/calib/acc"
)

// Key is what every stage knows of one key: a model version, or one of its slices.
type Key struct {
	Version  *Version
	Slice    string // "" = the whole
	K        int
	Labelled int64 // rows so far
	LateRows int64
	Recent   Recent
	Sample   []acc.SampleRow // latest rows, in order of label pane
	Added    int64           // rows that Sample got in this process
	Since    SinceInForce    // sampled rows since the newest calibrator took force
	Ledger   [32]byte        // a hash chain of what was published for the key
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

// SinceInForce are the sampled rows that came after the newest calibrator took force: as they came, and as it
// makes them. It is the evidence that the calibrator helps, on rows that it was not fitted on.
type SinceInForce struct {
	Revision        int
	Raw, Calibrated *acc.Set
}
