package refit

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestSpeedsBound: on any stream the mean map loses at most what fixed share promises more than each of the maps that
// it is mixed from,
//
//	Σ loss(θ) ≤ Σ loss(θ_i) + ln n - N ln(1 - α + α/n)
//
// and a map that is new to a change is followed soon.
func TestSpeedsBound(t *testing.T) {
	for name, slope := range map[string]func(i int) float64{
		"calibrated":    func(int) float64 { return 1 },
		"overconfident": func(int) float64 { return .4 },
		"turns":         func(i int) float64 { return []float64{1, .3}[i/1500%2] },
	} {
		s, err := newSpeeds(followed)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(5, 6))
		const rows = 6000
		lost, of := 0., make([]float64, len(s.Weights))
		for i := range rows {
			c := .5 + .5*r.Float64()
			l := math.Log(c / (1 - c))
			hit := r.Float64() < 1/(1+math.Exp(-slope(i)*l))
			loss := func(top calibrator.TopCorrection) float64 {
				p := 1 / (1 + math.Exp(-top.Slope*l-top.Intercept))
				if !hit {
					p = 1 - p
				}
				return -math.Log(p)
			}
			lost += loss(s.top())
			of[0] += loss(calibrator.TopCorrection{Slope: 1})
			for j, p := range s.Platts {
				of[1+j] += loss(calibrator.TopCorrection{Slope: p.Slope(), Intercept: p.Intercept()})
			}
			if err := s.update(c, hit, 1); err != nil {
				t.Fatal(err)
			}
		}
		n := float64(len(s.Weights))
		for j, x := range of {
			// Confidences are clipped and slopes kept positive in one of the two only.
			if most := x + math.Log(n) - rows*math.Log(1-followShare+followShare/n) + 1e-3; lost > most {
				t.Errorf("%s: map %d loses %.2f, the mean %.2f, allowed %.2f", name, j, x, lost, most)
			}
		}
		if name == "turns" && !(lost < of[0] && lost < of[2] && lost < of[3]) {
			t.Errorf("turns: the mean loses %.2f, its maps %.2f", lost, of)
		}
		state, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := restoreSpeeds(state)
		if err != nil || back.top() != s.top() || back.rows() != rows {
			t.Errorf("%s: restored %+v, %v; was %+v", name, back, err, s)
		}
	}
}

// TestSpeedsOfOneScaling: a state of the one scaling of earlier versions goes on as it was.
func TestSpeedsOfOneScaling(t *testing.T) {
	one, err := calibrator.NewOnlinePlatt(followed[1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := one.Update(.9, i%3 > 0); err != nil {
			t.Fatal(err)
		}
	}
	state, err := one.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	s, err := restoreSpeeds(state)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.top(); got != (calibrator.TopCorrection{Slope: one.Slope(), Intercept: one.Intercept()}) {
		t.Errorf("%+v, want slope %v, intercept %v", got, one.Slope(), one.Intercept())
	}
	for _, bad := range []string{`{}`, `[]`, `{"platts":[null],"weights":[0,1]}`, `{"platts":[],"weights":[.5]}`,
		`{"platts":[],"weights":[1,0]}`, `{"platts":[],"weights":[]}`, `{"platts":[],"weights":[1]}`, `null`} {
		if s, err := restoreSpeeds([]byte(bad)); err == nil {
			t.Errorf("%s: %+v, want an error", bad, s)
		}
	}
}
