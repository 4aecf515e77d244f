package calibrator_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestClassWeights: probabilities are the softmax of ln q + ln w, whatever factor the weights share; on top of itself
// weights multiply; the encoding reads back bit for bit.
func TestClassWeights(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	base, err := calibrator.NewTemperature(1.7)
	if err != nil {
		t.Fatal(err)
	}
	w := []float64{.5, 2, 1, 4}
	c, err := calibrator.NewClassWeights(base, w)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := calibrator.NewClassWeights(c, []float64{3, 3, 3, 3})
	if err != nil {
		t.Fatal(err)
	}
	z, q, p, again := make([]float64, 4), make([]float64, 4), make([]float64, 4), make([]float64, 4)
	moved := 0
	for range 200 {
		for k := range z {
			z[k] = 4 * rng.NormFloat64()
		}
		base.Apply(q, z)
		c.Apply(p, z)
		twice.Apply(again, z)
		var sum float64
		want := make([]float64, 4)
		for k := range want {
			want[k] = math.Exp(math.Log(q[k]) + math.Log(w[k]))
			sum += want[k]
		}
		for k := range want {
			const rounding = 1e-14
			if math.Abs(p[k]-want[k]/sum) > rounding || math.Abs(again[k]-p[k]) > rounding {
				t.Fatalf("class %d: %v, by a second layer %v, want %v", k, p[k], again[k], want[k]/sum)
			}
		}
		if top(p) != top(q) {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no row has changed its class: the weights do nothing")
	}
	b, err := calibrator.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := calibrator.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if b2, err := calibrator.Encode(back); err != nil || !bytes.Equal(b, b2) {
		t.Errorf("%s reads back as %s, %v", b, b2, err)
	}
	if got := back.(*calibrator.ClassWeights).Base(); got != calibrator.Calibrator(base) {
		t.Errorf("base is %v", got)
	}
	if c.Apply(p, []float64{1, math.NaN(), 0, 0}); !math.IsNaN(p[0]) {
		t.Errorf("a row with a NaN gives %v", p)
	}
}

func top(p []float64) (at int) {
	for k, x := range p {
		if x > p[at] {
			at = k
		}
	}
	return at
}

func TestClassWeightsRefused(t *testing.T) {
	for name, w := range map[string][]float64{"one": {1}, "zero": {0, 1}, "negative": {-1, 3}, "NaN": {math.NaN(), 1},
		"infinite": {math.Inf(1), 1}} {
		if _, err := calibrator.NewClassWeights(calibrator.Identity{}, w); err == nil {
			t.Errorf("%s: weights %v are taken", name, w)
		}
	}
	if _, err := calibrator.NewClassWeights(nil, []float64{1, 1}); err == nil {
		t.Error("no base is taken")
	}
	inside := func(base string) string {
		return `{"version":1,"method":"class_weights","params":{"weights":[1,1],"base":` + base + `}}`
	}
	metacal := `{"version":1,"method":"metacal","params":{"constraint":"accuracy","target":0.9,"threshold":0.5,` +
		`"base":{"version":1,"method":"identity"}}}`
	for name, text := range map[string]string{
		"in itself": inside(inside(`{"version":1,"method":"identity"}`)), "meta-cal": inside(metacal),
		"null":      inside("null"),
		"another K": inside(`{"version":1,"method":"class_temperature","params":{"temperatures":[1,1,1]}}`),
		"in meta-cal": strings.Replace(metacal, `{"version":1,"method":"identity"}`,
			inside(`{"version":1,"method":"identity"}`), 1),
		"deep": strings.Repeat(`{"version":1,"method":"class_weights","params":{"weights":[1,1],"base":`, 200),
	} {
		if _, err := calibrator.Decode([]byte(text)); !errors.Is(err, calibrator.ErrFormat) {
			t.Errorf("%s: error %v, want ErrFormat", name, err)
		}
	}
}
