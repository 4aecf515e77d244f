package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/pipeline"
)

// plainWeights are those of a correction without shortcuts: each class has the scale, and the ratio of the shares drawn towards 1, of the class
// that it is estimated with.
func plainWeights(t *testing.T, s *softJoint, now *acc.ClassCounts, before, after []float64) []float64 {
	t.Helper()
	e, err := shift.EM(shift.Table{K: s.pool.Classes(), Says: says(s.pool.Classes()), Joint: s.joint, Now: predictedCounts(now, s.pool), Soft: true})
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
			expected := p * p / (se[c] * se[c]) // rows that would say as much
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

// TestCorrectionOfManyClasses: of 150 classes the weights put into force before labels are those of the plain computation, help on the rows that
// follow, name the assumption, and leave no trace of crashes.
func TestCorrectionOfManyClasses(t *testing.T) {
	t.Parallel()
	const k, still = 150, 1500
	prior, moved := make([]float64, k), make([]float64, k)
	for j := range prior {
		prior[j] = 1 / float64(20+j)
		moved[j] = prior[j]
		if j%11 == 0 {
			moved[j] *= 6
		}
	}
	normalised(prior)
	normalised(moved)
	rows := manyRows(1, manyRows(2, nil, still, prior, prior), 2700, prior, moved)
	change := rows[still].TS
	for i := range rows {
		rows[i].LabelTS = rows[i].TS + 90*second
	}
	s := classSetup()
	s.model.Unlabelled.ReferenceRows = 1200
	s.model.Windows = s.model.Windows[:1]
	s.model.Refit.Method, s.model.Refit.LabelShift, s.model.Refit.FreshRows = methodNone, ShiftAtOnce, 700
	in := stream(t, rows, 2, 100)
	w := newWorld(t, s, in, 1).run(anyOrder)
	got := publishedFor(t, w, reasonShift)
	if len(got) == 0 {
		t.Fatal("no correction was published")
	}
	first := nanos(t, got[0].EffectiveFrom)
	if first < change {
		t.Errorf("a correction from %s, shares moved at %s", got[0].EffectiveFrom, pipeline.Format(change))
	}
	helped := 0
	for _, snap := range w.finals() {
		if snap.InForce != nil && nanos(t, snap.Window.Start) > first && snap.Labelled > 200 {
			helped++
			t.Logf("window from %s: NLL %.4f, raw %.4f", snap.Window.Start, *snap.Calibrated.NLL, *snap.Raw.NLL)
			if !(*snap.Calibrated.NLL < *snap.Raw.NLL-.02) {
				t.Errorf("window from %s: NLL %v, raw %v", snap.Window.Start, *snap.Calibrated.NLL, *snap.Raw.NLL)
			}
		}
	}
	if helped == 0 {
		t.Error("no window after the correction")
	}
	crashed := newWorld(t, s, in, 2)
	crashed.save, crashed.crash = .05, .01
	if crashed.run(anyOrder).hash() != w.hash() {
		t.Error("crashes leave a trace in the state")
	}
	v := w.model.models["m"].versions["v1"]
	key := v.keys[""]
	now, err := acc.NewClassCounts(k)
	w.must(err)
	p := make([]float64, k)
	for _, r := range rows[still:] {
		top, conf, err := topOf(r.Scores, p)
		w.must(err)
		w.must(now.Predict(top, conf, 1))
	}
	key.Sample = slices.DeleteFunc(key.Sample, func(r acc.SampleRow) bool { return r.TS >= change })
	before, after := predictedSample(key), predictedNow(now)
	v.Calibrators = nil
	c, why := key.drift.classes.correction(v, key, now, &s.model.Refit)
	if c == nil {
		t.Fatalf("no correction of all rows since: %s", why)
	}
	if c.Assumption != shift.PooledAssumption {
		t.Errorf("assumption %q", c.Assumption)
	}
	made, err := newSoftJoint(key, calibrator.Identity{}, shift.NewPool(shift.Contrast(before, after)))
	w.must(err)
	for j, want := range plainWeights(t, &made, now, before, after) {
		if x := c.cal.Weights()[j]; math.Abs(x-want) > 1e-9*want {
			t.Errorf("class %d: weight %v, want %v", j, x, want)
		}
	}
}

// topOf is what a model says of a row.
func topOf(scores []float32, p []float64) (top int, conf float64, err error) {
	z := make([]float64, len(scores))
	for j, x := range scores {
		z[j] = float64(x)
	}
	r, _, err := stage.Evaluate(nil, z, p, 0)
	return r.Arg, r.Conf, err
}

// TestCorrectionIsFinite: logits of any size, classes that never come and samples of one class make weights in range or none, and a state that reads
// back.
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
			key := &keyState{Key: stage.Key{K: k}, drift: &keyDrift{ref: newDriftRef(), next: newDriftRef(), classes: classDrift{k: k}}}
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
					y = int32(min(3, k-1)) // only what the model never says
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
			v := &version{}
			d := &key.drift.classes
			if err := d.follow(v, key, 300); err != nil {
				t.Fatalf("%s, K = %d: %v", name, k, err)
			}
			if c, why := d.correction(v, key, now, &RefitSpec{Alpha: 1e-9}); c != nil {
				for j, x := range c.cal.Weights() {
					if !(x >= calibrator.MinClassWeight && x <= calibrator.MaxClassWeight) {
						t.Errorf("%s, K = %d: class %d has the weight %v", name, k, j, x)
					}
				}
			} else if why != "" {
				t.Logf("%s, K = %d: %s", name, k, why)
			}
			state, err := key.drift.append(nil)
			if err != nil {
				t.Fatal(err)
			}
			back := keyDrift{classes: classDrift{k: k}}
			if err := back.restore(state); err != nil {
				t.Errorf("%s, K = %d: the state does not read back: %v", name, k, err)
			}
		}
	}
}
