package calibrator

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// uneven returns rows of three classes, of which 2 is noisy and rare.
func uneven(t *testing.T) *sample {
	t.Helper()
	s := small(t, 300, 3)
	for i := range s.y {
		if s.y[i] == 2 && i%3 != 0 {
			s.y[i] = int32(argmax(s.row(i)))
		}
	}
	return s
}

// plainWeights computes the 1 + w_k of c from the definition.
func plainWeights(s *sample, c Calibrator, alpha, beta float64, printed bool) []float64 {
	sum, mass := make([]float64, s.k), make([]float64, s.k)
	p := make([]float64, s.k)
	for i, y := range s.y {
		c.Apply(p, s.row(i))
		sum[y] -= s.w[i] * math.Log(p[y])
		mass[y] += s.w[i]
	}
	var mean, sd, n float64
	for k := range sum {
		if mass[k] > 0 {
			if !printed {
				sum[k] /= mass[k]
			}
			mean += sum[k]
			n++
		}
	}
	mean /= n
	for k := range sum {
		if mass[k] > 0 {
			sd += (sum[k] - mean) * (sum[k] - mean)
		}
	}
	if printed {
		sd = math.Sqrt(sd / n)
	} else {
		sd = math.Sqrt(sd / (n - 1))
	}
	out := make([]float64, s.k)
	for k := range out {
		if mass[k] > 0 {
			out[k] = 1 + beta/(1+math.Exp(-(sum[k]-mean)/sd/alpha)) - beta/2
		}
	}
	return out
}

// TestLossScalingIsAFixedPoint holds, for each method and both forms of the class loss, that the weights are those
// of the fitted calibrator, and that the calibrator is the fit under those weights.
func TestLossScalingIsAFixedPoint(t *testing.T) {
	s := uneven(t)
	for _, method := range []string{"temperature", "ensemble_temperature", "class_temperature",
		"parameterised_temperature"} {
		for _, printed := range []bool{false, true} {
			c, r, err := Fit(method+Suffix, NewData(s.z, s.k, s.y, s.w),
				Options{LossScaling: LossScaling{Printed: printed}})
			if err != nil || !r.Converged || r.LossScaling == nil {
				t.Errorf("%s: %+v, %v", method, r, err)
				continue
			}
			l := r.LossScaling
			want := plainWeights(s, c, l.Alpha, l.Beta, printed)
			rows := make([]float64, s.n)
			mass := make([]float64, s.k)
			for i, y := range s.y {
				mass[y] += s.w[i]
			}
			for i, y := range s.y {
				rows[i] = s.w[i] * l.Weights[y]
				if !printed {
					rows[i] /= mass[y]
				}
			}
			equal := l.DeviationAfter <= lossesAgree*r.NLLAfter // the weights jump there
			for k := range want {
				if !equal && math.Abs(l.Weights[k]-want[k]) > 2*weightsAgree {
					t.Errorf("%s, printed %v: weights %.6f, those of the calibrator %.6f", method, printed, l.Weights,
						want)
					break
				}
			}
			again, _, err := Fit(method, NewData(s.z, s.k, s.y, rows), Options{})
			if err != nil {
				t.Fatal(err)
			}
			// The network's ridge and its start know the weights, so another way to the optimum ends within it.
			tol := 1e-6
			if method == "parameterised_temperature" {
				tol = 2e-3
			}
			weighted := *s
			weighted.w, weighted.total = rows, 0
			for _, v := range rows {
				weighted.total += v
			}
			if a, b := weighted.nll(c), weighted.nll(again); math.Abs(a-b) > tol {
				t.Errorf("%s, printed %v: loss %.9f, fit under the same weights %.9f", method, printed, a, b)
			}
			if l.DeviationAfter > l.DeviationBefore {
				t.Errorf("%s: class losses deviate by %g, before by %g", method, l.DeviationAfter, l.DeviationBefore)
			}
		}
	}
}

// TestLossScalingChoice compares α and β with a grid of both.
func TestLossScalingChoice(t *testing.T) {
	before := []float64{0.9, 0.2, 1.4, 0.5}
	after := []float64{0.7, 0.4, 0.9, 0.45}
	var mean float64
	for _, v := range after {
		mean += v / 4
	}
	for _, set := range []LossScaling{{}, {Alpha: 0.3}, {Beta: 1.8}} {
		f := scaledFit{sample: &sample{k: 4}, set: set, losses: after, mass: []float64{1, 1, 1, 1}}
		normal, _ := f.normalised()
		value := func(alpha, beta float64) (v float64) {
			for k := range after {
				w := beta/(1+math.Exp(-normal[k]/alpha)) - beta/2
				d := before[k] - w*(after[k]-before[k]) - mean
				v += d * d
			}
			return v
		}
		var got LossScalingReport
		f.choose(&got, before, normal)
		best := math.Inf(1)
		for i := range 301 {
			for j := range 101 {
				alpha, beta := alphaMin+(alphaMax(4)-alphaMin)*float64(i)/300, betaMin+(betaMax-betaMin)*float64(j)/100
				if set.Alpha != 0 {
					alpha = set.Alpha
				}
				if set.Beta != 0 {
					beta = set.Beta
				}
				best = min(best, value(alpha, beta))
			}
		}
		if v := value(got.Alpha, got.Beta); v > best+1e-4 || set.Alpha != 0 && got.Alpha != set.Alpha ||
			set.Beta != 0 && got.Beta != set.Beta {
			t.Errorf("%+v: α %g, β %g with %g, grid %g", set, got.Alpha, got.Beta, v, best)
		}
	}
}

func TestLossScalingOfAwkwardClasses(t *testing.T) {
	s := uneven(t)
	absent, one := make([]int32, s.n), make([]int32, s.n)
	for i, y := range s.y {
		absent[i] = min(y, 1)
	}
	c, r, err := Fit("temperature+cls", NewData(s.z, s.k, absent, s.w), Options{})
	if err != nil || r.LossScaling.Weights[2] != 0 || !strings.Contains(strings.Join(r.Warnings, " "), "no rows") {
		t.Errorf("an absent class: %v, %+v, %v", c, r, err)
	}
	if _, r, err = Fit("temperature+cls", NewData(s.z, s.k, one, s.w), Options{}); err != nil || len(r.Warnings) == 0 ||
		!r.LossScaling.Converged {
		t.Errorf("one class: %+v, %v", r, err)
	}
	if !reflect.DeepEqual(r.LossScaling.Weights, []float64{1, 0, 0}) {
		t.Errorf("one class: weights %v, want 1 0 0", r.LossScaling.Weights)
	}
	// Rows of equal classes: no weights, so plain temperature scaling.
	z := []float64{4, 0, 4, 0, 4, 0, 0, 4, 0, 4, 0, 4}
	y := []int32{0, 0, 1, 1, 1, 0}
	c, r, err = Fit("temperature+cls", NewData(z, 2, y, nil), Options{})
	plain, _, _ := Fit("temperature", NewData(z, 2, y, nil), Options{})
	if err != nil || math.Abs(c.(Temperature).T()-plain.(Temperature).T()) > 1e-6 || r.LossScaling.Weights[0] != 1 {
		t.Errorf("equal classes: %v, %+v, %v, want %v", c, r.LossScaling, err, plain)
	}
}

func TestLossScalingOptions(t *testing.T) {
	s := uneven(t)
	byName, _, err := Fit("class_temperature+cls", NewData(s.z, s.k, s.y, s.w), Options{})
	if err != nil {
		t.Fatal(err)
	}
	byOption, _, err := Fit("class_temperature", NewData(s.z, s.k, s.y, s.w),
		Options{LossScaling: LossScaling{On: true}})
	if err != nil || !reflect.DeepEqual(byName, byOption) {
		t.Errorf("by name %v, by option %v, %v", byName, byOption, err)
	}
	for _, bad := range []LossScaling{{Alpha: 0.05}, {Alpha: 101}, {Alpha: math.NaN()}, {Beta: 1}, {Beta: 3},
		{Beta: math.NaN()}} {
		bad.On = true
		if _, _, err := Fit("temperature", NewData(s.z, s.k, s.y, s.w), Options{LossScaling: bad}); err == nil {
			t.Errorf("%+v accepted", bad)
		}
	}
	// The paper bounds α at nothing; ln(K)/2 is a bound of its code's search only.
	if _, r, err := Fit("temperature", NewData(s.z, s.k, s.y, s.w),
		Options{LossScaling: LossScaling{On: true, Alpha: 1}}); err != nil || r.LossScaling.Alpha != 1 {
		t.Errorf("alpha 1 with %d classes: %v", s.k, err)
	}
	for _, m := range Methods() {
		_, _, err := Fit(m.Name+Suffix, NewData(s.z, s.k, s.y, s.w), Options{})
		if (err == nil) != m.Scalable {
			t.Errorf("%s+cls: %v, scalable %v", m.Name, err, m.Scalable)
		}
		if _, err := Lookup(m.Name + Suffix); (err == nil) != m.Scalable {
			t.Errorf("lookup %s+cls: %v, scalable %v", m.Name, err, m.Scalable)
		}
	}
}
