package drift

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/model/stage"
)

func newKey(k int) *stage.Key {
	return &stage.Key{Version: &stage.Version{Model: "m", Name: "v", K: k}, K: k}
}

// plainWeights computes the weights of a correction without shortcuts. Each class has the scale of the class that it is
// estimated with, and the ratio of its shares, shrunk towards 1.
func plainWeights(t *testing.T, s *softJoint, now *acc.ClassCounts, before, after []float64) []float64 {
	t.Helper()
	e, err := shift.EM(shift.Table{K: s.pool.Classes(), Says: says(s.pool.Classes()), Joint: s.joint,
		Now: predictedCounts(now, s.pool), Soft: true})
	if err != nil {
		t.Fatal(err)
	}
	se, err := shift.ErrorsAt(s.table(now), nil)
	if err != nil {
		t.Fatal(err)
	}
	tau2 := shift.RatioVariance(before, after)
	out, mean := make([]float64, len(before)), 0.
	for j := range out {
		c := s.pool.Of(j)
		ratio := 1.
		if p := e.Reference[c]; p > 0 {
			expected := p * p / (se[c] * se[c]) // rows that would carry the same information
			ratio = (1 + tau2*expected*e.Shares[c]/p) / (1 + tau2*expected)
		}
		out[j] = s.bias[c] * ratio
		mean += out[j] / float64(len(out))
	}
	for j := range out {
		out[j] /= mean
	}
	return out
}

// TestCorrectionEqualsPlainComputation compares a correction of 150 classes with plainWeights.
func TestCorrectionEqualsPlainComputation(t *testing.T) {
	t.Parallel()
	const k = 150
	prior, moved := make([]float64, k), make([]float64, k)
	for j := range prior {
		prior[j] = 1 / float64(20+j)
		moved[j] = prior[j]
		if j%11 == 0 {
			moved[j] *= 6
		}
	}
	batchtest.Normalise(prior)
	batchtest.Normalise(moved)
	key := newKey(k)
	for i, r := range batchtest.ManyClasses(2, nil, 1500, prior, prior) {
		key.Sample = append(key.Sample, acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, W: 1, Y: r.Label,
			Z: r.Scores})
	}
	now, err := acc.NewClassCounts(k)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]float64, k)
	for _, r := range batchtest.ManyClasses(1, nil, 2700, prior, moved) {
		top, conf, err := topOf(r.Scores, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := now.Predict(top, conf, 1); err != nil {
			t.Fatal(err)
		}
	}
	d := classDrift{k: k}
	before, after := predictedSample(key), predictedNow(now)
	c, why := d.propose(key, now, .05)
	if c == nil {
		t.Fatalf("no correction: %s", why)
	}
	if c.Assumption != shift.PooledAssumption {
		t.Errorf("assumption %q", c.Assumption)
	}
	made, err := newSoftJoint(key, calibrator.Identity{}, shift.NewPool(shift.Contrast(before, after)))
	if err != nil {
		t.Fatal(err)
	}
	for j, want := range plainWeights(t, &made, now, before, after) {
		if x := c.cal.Weights()[j]; math.Abs(x-want) > 1e-9*want {
			t.Errorf("class %d: weight %v, want %v", j, x, want)
		}
	}
}

// topOf returns the prediction of a model for a row.
func topOf(scores []float32, p []float64) (top int, conf float64, err error) {
	r, ok := kernel.Logits(scores, p)
	if !ok {
		err = errors.New("scores are not finite")
	}
	return r.Arg, r.Conf, err
}

// TestCorrectionIsFinite: logits of any size, classes that never occur and samples of one class give weights in range
// or none, and a state that can be restored.
func TestCorrectionIsFinite(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]func(i, j int) float32{
		"largest": func(i, j int) float32 { return math.MaxFloat32 * float32(1-2*((i+j)%2)) },
		"ruled out": func(i, j int) float32 {
			if j == 3 {
				return -math.MaxFloat32
			}
			return float32((i + j) % 5)
		},
		"nearly ruled out": func(i, j int) float32 {
			if j == 3 {
				return -738 // the probability is denormal
			}
			return float32((i + j) % 5)
		},
		"one class": func(_, j int) float32 { return float32(-800 * min(j, 1)) },
		"flat":      func(int, int) float32 { return 0 },
		"tiny":      func(i, j int) float32 { return math.SmallestNonzeroFloat32 * float32(i*j) },
	} {
		for _, k := range []int{2, 6, 140} {
			key := newKey(k)
			st := New(&stage.Env{}, &Config{ReferenceRows: 1}).NewKey(key).(*State)
			now, err := acc.NewClassCounts(k)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]float64, k)
			for i := range 300 {
				z := make([]float32, k)
				for j := range z {
					z[j] = row(i, j)
				}
				y := int32(i % k)
				if strings.HasSuffix(name, "ruled out") {
					y = int32(min(3, k-1)) // only classes that the model never predicts
				}
				key.Sample = append(key.Sample, acc.SampleRow{W: 1, Y: y, Z: z})
				top, conf, err := topOf(z, p)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := now.Predict((top+i%2)%k, conf, 1); err != nil {
					t.Fatal(err)
				}
			}
			d := &st.classes
			if _, err := d.current(key, proposedShare); err != nil {
				t.Fatalf("%s, K = %d: %v", name, k, err)
			}
			if c, why := d.propose(key, now, 1e-9); c != nil {
				for j, x := range c.cal.Weights() {
					if !(x >= calibrator.MinClassWeight && x <= calibrator.MaxClassWeight) {
						t.Errorf("%s, K = %d: class %d has the weight %v", name, k, j, x)
					}
				}
			} else if why != "" {
				t.Logf("%s, K = %d: %s", name, k, why)
			}
			state, err := st.AppendState(nil)
			if err != nil {
				t.Fatal(err)
			}
			back := State{classes: classDrift{k: k}}
			if err := restored(&back, state); err != nil {
				t.Errorf("%s, K = %d: the state does not read back: %v", name, k, err)
			}
		}
	}
}
