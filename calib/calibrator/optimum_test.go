package calibrator_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// TestNoNeighbourIsBetter perturbs the parameters of the fits that are convex, on every awkward table: none may have a
// lower NLL on the fitted rows, computed plainly, than the fit by more than its report admits.
func TestNoNeighbourIsBetter(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 80))
	methods, compared := []string{"temperature", "class_temperature", "vector", "ensemble_temperature"},
		map[string]int{}
	for _, k := range []int{2, 3, 10} {
		for _, table := range sweepTables(k) {
			for _, method := range methods {
				for kind, w := range sweepWeights(len(table.y)) {
					c, r, err := calibrator.Fit(method, calibrator.NewData(table.z, k, table.y, w),
						calibrator.Options{Probs: table.probs})
					if err != nil || !r.Converged {
						continue
					}
					least, ok := plainNLL(t, c, table, w)
					if !ok {
						continue
					}
					// The ridge of vector scaling, 1e-9 of the squared parameters, is in what it minimises.
					// Near a bound the fits of several parameters end where a step gains less than 1e-7.
					slack := 1.5e-7*(1+least) + 1e-9*squares(t, c)
					for range 20 {
						near, ok := neighbour(t, c, rng)
						if !ok {
							continue
						}
						if nll, ok := plainNLL(t, near, table, w); ok && nll < least-slack {
							t.Errorf("%s, %s, weights %s: NLL %.12g of %s, but %.12g of %s", method, table.name, kind,
								least, c.Describe(), nll, near.Describe())
							break
						}
						compared[method]++
					}
				}
			}
		}
	}
	for _, method := range methods {
		if n := compared[method]; n < 1000 {
			t.Errorf("%s: only %d neighbours were compared", method, n)
		}
	}
}

// plainNLL is the weighted mean of -ln p_y; false where a p_y is so small that float64 does not hold it well.
func plainNLL(t *testing.T, c calibrator.Calibrator, table sweepTable, w []float64) (float64, bool) {
	t.Helper()
	p := make([]float64, len(table.z))
	if err := calibrator.ApplyRows(c, p, table.z, table.k, table.probs); err != nil {
		t.Fatal(err)
	}
	var sum, total float64
	for i, y := range table.y {
		wi := 1.0
		if w != nil {
			wi = w[i]
		}
		if wi == 0 {
			continue
		}
		if p[i*table.k+int(y)] < 1e-290 {
			return 0, false
		}
		sum -= wi * math.Log(p[i*table.k+int(y)])
		total += wi
	}
	return sum / total, true
}

func parameters(t *testing.T, c calibrator.Calibrator) map[string]any {
	t.Helper()
	text, err := calibrator.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func squares(t *testing.T, c calibrator.Calibrator) (sum float64) {
	t.Helper()
	if p, ok := parameters(t, c)["params"].(map[string]any); ok && c.Method() == "vector" {
		for _, list := range p {
			for _, v := range list.([]any) {
				sum += v.(float64) * v.(float64)
			}
		}
	}
	return sum
}

// neighbour is c with its parameters moved by 1e-4 to 1 of themselves, inside their bounds; not its T where weights
// mix, for that is the best T alone.
func neighbour(t *testing.T, c calibrator.Calibrator, rng *rand.Rand) (calibrator.Calibrator, bool) {
	t.Helper()
	size := math.Pow(10, -4*rng.Float64())
	move := func(v float64) float64 { return v + size*rng.NormFloat64()*max(.01, math.Abs(v)) }
	clamp := func(v float64) float64 { return min(20, max(.05, v)) }
	all := parameters(t, c)
	params, _ := all["params"].(map[string]any)
	list := func(key string) []any { return params[key].([]any) }
	switch c.Method() {
	case "temperature":
		all["temperature"] = clamp(move(all["temperature"].(float64)))
	case "class_temperature":
		for i, v := range list("temperatures") {
			list("temperatures")[i] = clamp(move(v.(float64)))
		}
	case "vector":
		for _, key := range []string{"w", "b"} {
			for i, v := range list(key) {
				list(key)[i] = move(v.(float64))
			}
		}
	case "ensemble_temperature":
		var sum float64
		w := list("weights")
		for i, v := range w {
			w[i] = max(0, v.(float64)+size*rng.NormFloat64())
			sum += w[i].(float64)
		}
		if sum == 0 {
			return nil, false
		}
		for i, v := range w {
			w[i] = v.(float64) / sum
		}
	default:
		panic(fmt.Sprintf("no neighbours of %s", c.Method()))
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	near, err := calibrator.Decode(text)
	if err != nil && strings.Contains(err.Error(), "mean") {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return near, true
}
