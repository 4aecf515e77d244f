package model

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/operators/inforce"
	"github.com/plumbline/plumbline/pipeline"
)

// inForce is a published calibrator with the event time from which it is in force; with a share above 0, a canary.
type inForce struct {
	revision int
	from     int64
	share    float64 // of the ids; 0 = all
	until    int64   // end of a canary; 0 = not yet
	cal      calibrator.Calibrator
	encoded  []byte
	reason   string

	known sampleLosses
}

// serves reports whether a row with a hash of its id is calibrated by f, as far as f alone can say.
func (f *inForce) serves(ts int64, id [16]byte) bool {
	return inforce.Period{From: f.from, Share: f.share, Until: f.until}.Serves(ts, id)
}

// at returns the calibrator of a row by its event time and the hash of its id; nil = the identity.
func (v *version) at(ts int64, id [16]byte) *inForce {
	for i := len(v.calibrators) - 1; i >= 0; i-- {
		if v.calibrators[i].serves(ts, id) {
			return v.calibrators[i]
		}
	}
	return nil
}

// sinceInForce are the sampled rows that came after the newest calibrator took force: as they came, and as it
// makes them. It is the evidence that the calibrator helps, on rows that it was not fitted on.
type sinceInForce struct {
	revision int
	raw, cal *acc.Set
}

// score scores a pane's sampled rows by the calibrator in force at each row's event time: what a server that
// follows the calibrators would have served. There is no feedback edge into the shards' statistics.
func (t *ModelTask) score(v *version, k *keyState, in *paneInput) (scored, error) {
	out := scored{}
	sc := newScorer(k.k)
	for i := range in.rows {
		row := &in.rows[i]
		pane := pipeline.PaneIndex(row.TS, t.cfg.Pane)
		set := out[pane]
		if set == nil {
			var err error
			if set, err = newSums(&t.cfg, k.k); err != nil {
				return nil, err
			}
			out[pane] = set
		}
		f := v.at(row.TS, row.ID)
		if err := sc.add(set, f, row); err != nil {
			return nil, err
		}
		if f == nil || f != v.newest() {
			continue
		}
		if err := t.addSince(k, f, row, sc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (t *ModelTask) addSince(k *keyState, f *inForce, row *acc.SampleRow, sc *scorer) error {
	if k.since.revision != f.revision || k.since.raw == nil {
		raw, err := newSums(&t.cfg, k.k)
		if err != nil {
			return err
		}
		cal, err := newSums(&t.cfg, k.k)
		if err != nil {
			return err
		}
		k.since = sinceInForce{f.revision, raw, cal}
	}
	if err := sc.add(k.since.raw, nil, row); err != nil {
		return err
	}
	return sc.add(k.since.cal, f, row)
}

// scorer is the scratch memory of scoring rows of K scores.
type scorer struct {
	z, p []float64
	e    []float32
	one  [1]kernel.Row
}

func newScorer(k int) *scorer {
	return &scorer{z: make([]float64, k), p: make([]float64, k), e: make([]float32, k)}
}

// add adds a row to labelled sums as calibrator f (nil = identity) makes it. The identity gives the numbers of Stats:
// both use the block kernel.
func (s *scorer) add(set *acc.Set, f *inForce, row *acc.SampleRow) error {
	y, w, lag := int(row.Y), float64(row.W), row.LabelTS-row.TS
	if f == nil {
		kernel.LogitRows(s.one[:], s.e, row.Z, len(row.Z), 1)
		r := s.one[0]
		if !r.OK {
			return fmt.Errorf("sampled logits are not finite")
		}
		return set.LabelScaled(r, s.e, row.Z, y, kernel.NLL(r, row.Z, y, false), w, lag, math.NaN())
	}
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	r, nll, err := calibrated(f.cal, s.z, s.p, y)
	if err != nil {
		return err
	}
	return set.Label(r, s.p, y, nll, w, lag, math.NaN())
}

// rowScore is what one calibrator makes of one labelled row.
type rowScore struct {
	nll, conf float64 // nll at most the bound
	hit       bool
}

// row scores a row by a calibrator (nil = identity), the NLL bounded as tests need it.
func (s *scorer) row(cal calibrator.Calibrator, row *acc.SampleRow, bound float64) (rowScore, error) {
	for i, x := range row.Z {
		s.z[i] = float64(x)
	}
	r, nll, err := calibrated(cal, s.z, s.p, int(row.Y))
	return rowScore{min(nll, bound), r.Conf, r.Arg == int(row.Y)}, err
}

// calibrated applies cal (nil = identity) to logits z: p gets the probabilities.
func calibrated(cal calibrator.Calibrator, z, p []float64, y int) (kernel.Row, float64, error) {
	if cal == nil {
		r, ok := kernel.Logits(z, p)
		if !ok {
			return r, 0, fmt.Errorf("sampled logits are not finite")
		}
		return r, kernel.NLL(r, z, y, false), nil
	}
	q := make([]float64, len(z))
	cal.Apply(q, z)
	r, ok := kernel.Probs(q, p)
	if !ok {
		return r, 0, fmt.Errorf("calibrator %s gives no probabilities", cal.Method())
	}
	return r, kernel.NLL(r, q, y, true), nil
}
