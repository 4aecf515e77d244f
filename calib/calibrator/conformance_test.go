package calibrator_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
)

var opts calibrator.Options

// everyMethod is every method of the registry, and again, under class-wise loss scaling, where that can wrap it.
func everyMethod() []calibrator.FitMethod {
	methods := calibrator.Methods()
	for _, m := range methods {
		if m.Scalable {
			m.Name += calibrator.Suffix
			methods = append(methods, m)
		}
	}
	return methods
}

// hostile are rows of four classes at the edge of what Apply must take.
var hostile = [][]float64{
	{80, -80, 0, 1}, {-80, -80, -80, -80}, {80, 80, 80, 80}, {0, 0, 0, 0}, {1, 1, 0, 0}, {80, 80, -80, -80},
	{1, 2, 3, 4}, {1, 2, 3, 4}, {-80, 80, -80, 80}, {1e-300, 0, -1e-300, 0}, {0, math.Inf(-1), 1, 2},
	{1e300, -1e300, 0, 1}, {math.MaxFloat64, -math.MaxFloat64, 0, 0}, {3e38, 3e38, -3e38, 0},
	{1, 1 - 0x1p-53, 1 - 0x1p-52, 0},
}

func TestMethodsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range calibrator.Methods() {
		if seen[m.Name] {
			t.Errorf("%s is listed twice", m.Name)
		}
		seen[m.Name] = true
		if m.Title == "" || m.Name != "identity" && m.Reference == "" || m.MinRows < 1 || m.Parameters == nil ||
			m.Parameters(10) < 0 {
			t.Errorf("%+v lacks something", m)
		}
		if m.KeepsRanking && !m.KeepsArgmax {
			t.Errorf("%s keeps the ranking and not the argmax", m.Name)
		}
		if got, err := calibrator.Lookup(m.Name); err != nil || got.Title != m.Title {
			t.Errorf("lookup %s: %+v, %v", m.Name, got, err)
		}
	}
	for _, name := range []string{"", "Temperature", "temperature ", "platt+cls", "nope", "+cls"} {
		if _, err := calibrator.Lookup(name); err == nil {
			t.Errorf("lookup %q: no error", name)
		}
		if c, _, err := calibrator.Fit(name, calibrator.NewData([]float64{1, 0}, 2, []int32{0}, nil),
			opts); err == nil || c != nil {
			t.Errorf("fit %q: %v, %v", name, c, err)
		}
	}
}

// TestEveryMethodConforms fits every method on rows that it can fit, and holds it to the interface.
func TestEveryMethodConforms(t *testing.T) {
	z, y := synthetic(400, 4, 2, 7)
	rng := rand.New(rand.NewPCG(8, 8))
	w := make([]float64, len(y))
	for i := range w {
		w[i] = float64(1 + rng.IntN(3))
	}
	for _, m := range everyMethod() {
		t.Run(m.Name, func(t *testing.T) {
			keepZ, keepY, keepW := append([]float64(nil), z...), append([]int32(nil), y...),
				append([]float64(nil), w...)
			c, r, err := calibrator.Fit(m.Name, calibrator.NewData(z, 4, y, w), opts)
			if err != nil || !r.Converged || r.Rows != 400 || r.Classes != 4 {
				t.Fatalf("%+v, %v", r, err)
			}
			if !reflect.DeepEqual(z, keepZ) || !reflect.DeepEqual(y, keepY) || !reflect.DeepEqual(w, keepW) {
				t.Error("the fit changed its input")
			}
			if d := c.Describe(); d == "" || strings.ContainsAny(d, "\n%") {
				t.Errorf("Describe: %q", d)
			}
			rows := append([][]float64(nil), hostile...)
			for i := 0; i < len(z); i += 4 {
				rows = append(rows, z[i:i+4])
			}
			checkApply(t, m, c, rows)
			checkRoundTrip(t, c, rows)
			checkSlab(t, c, z, 4)
			again, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, 4, y, w), opts)
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Errorf("fitted again: %v, %v, want %v", again, err, c)
			}
		})
	}
}

// checkApply holds c to the contract of Apply on rows of four classes.
func checkApply(t *testing.T, m calibrator.FitMethod, c calibrator.Calibrator, rows [][]float64) {
	t.Helper()
	p, q := make([]float64, 4), make([]float64, 4)
	for _, row := range rows {
		c.Apply(p, row)
		var sum float64
		for _, v := range p {
			sum += v
			if !(v >= 0 && v <= 1) {
				t.Fatalf("%s %v: p %v", m.Name, row, p)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s %v: Σp - 1 = %g", m.Name, row, sum-1)
		}
		a := argmax(row)
		for k := range p {
			if m.KeepsArgmax && p[k] > p[a] {
				t.Errorf("%s %v: p %v has another argmax", m.Name, row, p)
			}
			for l := range p {
				if m.KeepsRanking && row[k] > row[l] && p[k] < p[l] {
					t.Errorf("%s %v: p %v has another order", m.Name, row, p)
				}
			}
		}
		if m.TopLabel { // the other classes keep their ratios
			calibrator.Identity{}.Apply(q, row)
			for k := range p {
				for l := range p {
					if k != a && l != a && math.Abs(p[k]*q[l]-p[l]*q[k]) > 1e-12*max(p[k]*q[l], 1e-300) {
						t.Errorf("%s %v: p %v, ratios of %v", m.Name, row, p, q)
					}
				}
			}
		}
		alias := append([]float64(nil), row...)
		if c.Apply(alias, alias); !reflect.DeepEqual(alias, p) {
			t.Errorf("%s %v: aliased %v, apart %v", m.Name, row, alias, p)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		for at := range 4 {
			row := []float64{0, 3, 1, 2}
			row[at] = bad
			c.Apply(p, row)
			for _, v := range p {
				if !math.IsNaN(v) {
					t.Errorf("%s: %v gave %v", m.Name, row, p)
					break
				}
			}
		}
	}
}

func checkRoundTrip(t *testing.T, c calibrator.Calibrator, rows [][]float64) {
	t.Helper()
	text, err := calibrator.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := calibrator.Decode(text)
	if err != nil || !reflect.DeepEqual(back, c) || back.Describe() != c.Describe() {
		t.Fatalf("got %v, %v, want %v", back, err, c)
	}
	if again, err := calibrator.Encode(back); err != nil || !bytes.Equal(again, text) {
		t.Errorf("encoded again %s, %v, want %s", again, err, text)
	}
	p, q := make([]float64, 4), make([]float64, 4)
	for _, row := range rows {
		c.Apply(p, row)
		back.Apply(q, row)
		if !sameBits(p, q) {
			t.Errorf("%v: got %v, want %v", row, q, p)
		}
	}
}

func sameBits(p, q []float64) bool {
	for i := range p {
		if math.Float64bits(p[i]) != math.Float64bits(q[i]) {
			return false
		}
	}
	return len(p) == len(q)
}

// checkSlab holds ApplyRows to Apply, row by row.
func checkSlab(t *testing.T, c calibrator.Calibrator, z []float64, k int) {
	t.Helper()
	want := make([]float64, len(z))
	for i := 0; i < len(z); i += k {
		c.Apply(want[i:i+k], z[i:i+k])
	}
	got := append([]float64(nil), z...)
	if err := calibrator.ApplyRows(c, got, got, k, false); err != nil || !sameBits(got, want) {
		t.Errorf("slab: %v", err)
	}
	half, single := make([]float32, len(z)), make([]float32, len(z))
	for i, v := range z {
		half[i] = float32(v)
	}
	if err := calibrator.ApplyRows(c, single, half, k, false); err != nil {
		t.Error(err)
	}
	row, p := make([]float64, k), make([]float64, k)
	for i := 0; i < len(z); i += k {
		for j := range row {
			row[j] = float64(half[i+j])
		}
		c.Apply(p, row)
		for j, v := range p {
			if math.Abs(float64(single[i+j])-v) > 1.1e-6*v+1e-36 { // the block kernel, and rounding to float32
				t.Fatalf("float32 row %d: got %v, want %v", i/k, single[i:i+k], p)
			}
		}
	}
	if _, ok := c.(calibrator.Sized); ok {
		if err := calibrator.ApplyRows(c, got, got, 2, false); err == nil {
			t.Error("rows of two classes were taken by a calibrator of another K")
		}
	}
	if allocs := testing.AllocsPerRun(3, func() { _ = calibrator.ApplyRows(c, got, z, k, false) }); allocs > 12 {
		t.Errorf("%g allocations for %d rows", allocs, len(z)/k)
	}
}

func argmax(v []float64) int {
	a := 0
	for k, x := range v {
		if x > v[a] {
			a = k
		}
	}
	return a
}

func TestApplyRowsRefuses(t *testing.T) {
	c := calibrator.Identity{}
	z := []float64{1, 2, 3, 4}
	for name, err := range map[string]error{
		"no classes":   calibrator.ApplyRows(c, z, z, 0, false),
		"broken row":   calibrator.ApplyRows(c, z, z, 3, false),
		"short result": calibrator.ApplyRows(c, z[:2], z, 2, false),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := calibrator.ApplyRows(c, []float64(nil), []float32(nil), 3, true); err != nil {
		t.Errorf("no rows: %v", err)
	}
	// A bad row does not stop the others; probabilities with a zero are fine.
	p := make([]float64, 8)
	if err := calibrator.ApplyRows(c, p, []float32{0.25, 0.75, 0.9, 0.9, 1, 0, float32(math.NaN()), 1}, 2,
		true); err != nil {
		t.Fatal(err)
	}
	if math.Abs(p[0]-0.25) > 1e-12 || !math.IsNaN(p[2]) || !math.IsNaN(p[3]) || p[4] != 1 || !(p[5] < 1e-40) ||
		!math.IsNaN(p[6]) {
		t.Errorf("got %v", p)
	}
	if err := calibrator.ApplyRows(c, p, []float64{1, 0, math.Inf(-1), 0, math.NaN(), 0, math.Inf(1), 0}, 2,
		false); err != nil ||
		!(p[0] > p[1]) || !math.IsNaN(p[3]) || !math.IsNaN(p[5]) || !math.IsNaN(p[7]) {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestTemperRowsAgainstApply holds the block path to Apply over rows that do not fill a block, in place, with bad rows.
func TestTemperRowsAgainstApply(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, k := range []int{2, 10, 100, 5000} {
		z := make([]float32, k*3*max(1, 5000/k)+k)
		for i := range z {
			z[i] = float32(6 * rng.NormFloat64())
		}
		z[0], z[2*k+1], z[3*k] = float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1))
		for _, c := range []calibrator.Calibrator{calibrator.Identity{}, temperature(t, 0.05), temperature(t, 3)} {
			got, wide := append([]float32(nil), z...), make([]float64, len(z))
			if err := calibrator.ApplyRows(c, got, got, k, false); err != nil {
				t.Fatal(err)
			}
			if err := calibrator.ApplyRows(c, wide, z, k, false); err != nil {
				t.Fatal(err)
			}
			row, p := make([]float64, k), make([]float64, k)
			for i := 0; i < len(z); i += k {
				bad := false
				for j := range row {
					row[j] = float64(z[i+j])
					bad = bad || math.IsNaN(row[j]) || math.IsInf(row[j], 0)
				}
				c.Apply(p, row)
				for j, want := range p {
					if bad {
						want = math.NaN()
					}
					v := float64(got[i+j])
					if math.IsNaN(v) != bad || !bad && (math.Abs(v-want) > 1.1e-6*want+1e-36 || wide[i+j] != want) {
						t.Fatalf("%s, K %d, row %d, class %d: got %g, %g, want %g", c.Describe(), k, i/k, j, v,
							wide[i+j], want)
					}
				}
			}
		}
	}
}
