package calibrator_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/testsize"
)

// sweepTable is labelled rows of k classes.
type sweepTable struct {
	name  string
	k     int
	z     []float64
	y     []int32
	probs bool
}

func sweepTables(k int) (tables []sweepTable) {
	rng := rand.New(rand.NewPCG(uint64(k), 91))
	add := func(name string, n int, probs bool, row func(i int, v []float64) int) {
		t := sweepTable{name: fmt.Sprintf("%s, K = %d", name, k), k: k, z: make([]float64, n*k), probs: probs}
		for i := range n {
			t.y = append(t.y, int32(row(i, t.z[i*k:(i+1)*k])))
		}
		tables = append(tables, t)
	}
	random := func(_ int, v []float64) int {
		for j := range v {
			v[j] = 2 * rng.NormFloat64()
		}
		return rng.IntN(k)
	}
	for _, far := range []float64{80, 1e4, 1e30, math.MaxFloat32} {
		add(fmt.Sprintf("|z| = %g", far), 30, false, func(i int, v []float64) int {
			y := random(i, v)
			for j := range v {
				v[j] = math.Copysign(far, v[j])
			}
			return y
		})
	}
	add("identical rows", 30, false, func(i int, v []float64) int { v[1] = 1; return i % k })
	add("identical rows, all right", 30, false, func(_ int, v []float64) int { v[1] = 1; return 1 })
	add("identical rows, all wrong", 30, false, func(_ int, v []float64) int { v[1] = 1; return 0 })
	add("uniform rows", 30, false, func(i int, _ []float64) int { return i % k })
	add("ties", 30, false, func(i int, v []float64) int { v[i%k], v[(i+1)%k] = 1, 1; return rng.IntN(k) })
	add("all right", 30, false, func(i int, v []float64) int { v[i%k] = 1 + float64(i); return i % k })
	add("all wrong", 30, false, func(i int, v []float64) int { v[i%k] = 1 + float64(i); return (i + 1) % k })
	add("|z| = 80, all wrong", 30, false, func(i int, v []float64) int {
		v[i%k], v[(i+1)%k] = 80,
			-80
		return (i + 1) % k
	})
	add("zeros and ones", 30, true, func(i int, v []float64) int { v[i%k] = 1; return rng.IntN(k) })
	add("zeros and ones, all wrong", 30, true, func(i int, v []float64) int { v[i%k] = 1; return (i + 1) % k })
	add("halves", 30, true, func(i int, v []float64) int { v[i%k], v[(i+1)%k] = .5, .5; return rng.IntN(k) })
	add("an absent class", 40, false, func(i int, v []float64) int { return min(random(i, v), k-2) })
	add("one label", 30, false, func(i int, v []float64) int { random(i, v); return k - 1 })
	add("a row that is sure and wrong", 40, false, func(i int, v []float64) int {
		random(i, v)
		if i == 20 {
			v[0] = 1e5
			return 1
		}
		return 0
	})
	for _, n := range []int{1, 2, 3, 4, 7} {
		add(fmt.Sprintf("%d rows", n), n, false, random)
	}
	return tables
}

// sweepOptions are the defaults, and settings at the ends of what is allowed.
func sweepOptions(method string) []calibrator.Options {
	base := strings.TrimSuffix(method, calibrator.Suffix)
	out := []calibrator.Options{{}}
	switch base {
	case "temperature_sbece":
		out = append(out, calibrator.Options{SoftBins: calibrator.SoftBins{Bins: 1, Temperature: 1e-12, Norm: 1}},
			calibrator.Options{SoftBins: calibrator.SoftBins{Bins: 1000, Temperature: 1e12, Norm: 400}})
	case "histogram", "histogram_width", "scaling_binning":
		out = append(out, calibrator.Options{Bins: 1}, calibrator.Options{Bins: 5000})
	case "spline":
		out = append(out, calibrator.Options{Residual: true}, calibrator.Options{Knots: 2},
			calibrator.Options{Knots: 60, Residual: true})
	case "metacal_miscoverage", "metacal_accuracy":
		out = append(out, calibrator.Options{Accuracy: 1e-9, Miscoverage: 1 - 1e-9,
			MetaCal: calibrator.MetaCalSettings{RankEvery: 1}},
			calibrator.Options{Accuracy: 1 - 1e-9, Miscoverage: 1e-9, MetaCal: calibrator.MetaCalSettings{Delta: .1}})
	case "parameterised_temperature":
		out = append(out, calibrator.Options{Parameterised: calibrator.Parameterised{Top: 1, Hidden: 1, MSE: true}},
			calibrator.Options{Parameterised: calibrator.Parameterised{Ridge: 1e-12, Steps: 20}})
	case "matrix", "dirichlet":
		out = append(out, calibrator.Options{ODIR: calibrator.ODIR{OffDiagonal: 1e-9, Intercept: 1e-9}},
			calibrator.Options{ODIR: calibrator.ODIR{OffDiagonal: 1e9, Intercept: 1e9}})
	}
	if strings.HasSuffix(method, calibrator.Suffix) {
		out = append(out, calibrator.Options{LossScaling: calibrator.LossScaling{Alpha: .1, Beta: 2, Printed: true}})
	}
	return out
}

func sweepWeights(n int) map[string][]float64 {
	out := map[string][]float64{"none": nil}
	for name, f := range map[string]func(i int) float64{
		"1e-30 and 1e30": func(i int) float64 { return []float64{1e30, 1e-30}[i%2] },
		"some 0":         func(i int) float64 { return float64(i % 3) },
	} {
		w := make([]float64, n)
		for i := range w {
			w[i] = f(i)
		}
		out[name] = w
	}
	return out
}

// TestEveryMethodOnEveryAwkwardTable: a fit ends with an error or with a calibrator that maps hostile rows to
// distributions, keeps what it says it keeps, and reads back bit for bit.
func TestEveryMethodOnEveryAwkwardTable(t *testing.T) {
	testsize.Slow(t)
	classes := []int{2, 3, 10}
	if testing.Short() {
		classes = classes[:2]
	}
	for _, m := range everyMethod() {
		for _, k := range classes {
			for _, table := range sweepTables(k) {
				for i, o := range sweepOptions(m.Name) {
					for kind, w := range sweepWeights(len(table.y)) {
						if (kind != "none" || k > 3) && i > 0 || kind != "none" && k > 3 {
							continue // a part of the combinations, for time
						}
						sweepOne(t, fmt.Sprintf("%s, options %d, %s, weights %s", m.Name, i, table.name, kind), m,
							table, w, o)
					}
				}
			}
		}
	}
}

func sweepOne(t *testing.T, what string, m calibrator.FitMethod, table sweepTable, w []float64, o calibrator.Options) {
	t.Helper()
	o.Probs = table.probs
	c, r, err := calibrator.Fit(m.Name, calibrator.NewData(table.z, table.k, table.y, w), o)
	if err != nil {
		if c != nil || !strings.HasPrefix(err.Error(), "fit ") {
			t.Errorf("%s: %v, %v", what, c, err)
		}
		return
	}
	if math.IsNaN(r.NLLAfter) || math.IsInf(r.NLLAfter, 0) || math.IsNaN(r.NLLBefore) || math.IsInf(r.NLLBefore, 0) {
		t.Errorf("%s: NLL %g, before %g", what, r.NLLAfter, r.NLLBefore)
	}
	text, err := calibrator.Encode(c)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	back, err := calibrator.Decode(text)
	if err != nil {
		t.Fatalf("%s: %s: %v", what, text, err)
	}
	rows := hostileRows(table.k)
	if !table.probs {
		rows = append(rows, table.z...)
	}
	p, q := make([]float64, table.k), make([]float64, table.k)
	for at := 0; at < len(rows); at += table.k {
		row := rows[at : at+table.k]
		c.Apply(p, row)
		if back.Apply(q, row); !sameBits(p, q) {
			t.Errorf("%s: %v gives %v, read back %v", what, row, p, q)
		}
		if bad := notDistribution(p); bad != "" {
			t.Errorf("%s: %v gives %v: %s", what, row, p, bad)
			return
		}
		keeps(t, what, m, row, p)
	}
}

func notDistribution(p []float64) string {
	var sum float64
	for _, v := range p {
		if !(v >= 0 && v <= 1) {
			return "not a probability"
		}
		sum += v
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Sprintf("the sum is off by %g", sum-1)
	}
	return ""
}

func keeps(t *testing.T, what string, m calibrator.FitMethod, z, p []float64) {
	t.Helper()
	a := argmax(z)
	for k := range p {
		if m.KeepsArgmax && p[k] > p[a] {
			t.Errorf("%s: %v became %v, of another class", what, z, p)
			return
		}
		for l := range p {
			if m.KeepsRanking && z[k] > z[l] && p[k] < p[l] {
				t.Errorf("%s: %v became %v, in another order", what, z, p)
				return
			}
		}
	}
}

// hostileRows are those of hostile, repeated or cut to k classes, and their negatives.
func hostileRows(k int) (rows []float64) {
	for _, h := range hostile {
		for _, sign := range []float64{1, -1} {
			for j := range k {
				v := sign * h[j%4]
				if math.IsInf(v, 1) {
					v = 0
				}
				rows = append(rows, v)
			}
		}
	}
	return rows
}

// TestOneRowOfManyClasses: K = 1000 and n = 1.
func TestOneRowOfManyClasses(t *testing.T) {
	testsize.Slow(t)
	const k = 1000
	z := make([]float64, k)
	for j := range z {
		z[j] = float64(j%17) / 3
	}
	for _, m := range everyMethod() {
		if base := strings.TrimSuffix(m.Name, calibrator.Suffix); base == "matrix" || base == "dirichlet" {
			continue // a million parameters
		}
		for _, y := range []int32{0, 16, 999} {
			table := sweepTable{k: k, z: z, y: []int32{y}}
			sweepOne(t, fmt.Sprintf("%s of label %d", m.Name, y), m, table, nil, calibrator.Options{})
		}
	}
}

// TestBadRowsAreNamed: NaN, infinities, labels and weights that are not allowed are errors that name the row, in both
// types.
func TestBadRowsAreNamed(t *testing.T) {
	for _, m := range everyMethod() {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			z, y := synthetic(20, 3, 2, 5)
			z[3*7+1] = bad
			narrow := make([]float32, len(z))
			for i, v := range z {
				narrow[i] = float32(v)
			}
			_, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, 3, y, nil), opts)
			_, _, err32 := calibrator.Fit(m.Name, calibrator.NewData(narrow, 3, y, nil), opts)
			for _, err := range []error{err, err32} {
				if err == nil || !strings.Contains(err.Error(), "row 7") ||
					!strings.Contains(err.Error(), "allowed are finite") {
					t.Errorf("%s, a score of %g: got %v", m.Name, bad, err)
				}
			}
			w := make([]float64, 20)
			w[4] = bad
			z[3*7+1] = 0
			if _, _, err := calibrator.Fit(m.Name, calibrator.NewData(z, 3, y, w), opts); err == nil ||
				!strings.Contains(err.Error(), "row 4: weight") {
				t.Errorf("%s, a weight of %g: got %v", m.Name, bad, err)
			}
		}
	}
}

// TestSBECEPlateauKeepsTheRows: where every T up to 4 has SB-ECE 0, T stays 1.
func TestSBECEPlateauKeepsTheRows(t *testing.T) {
	c, r, err := calibrator.FitTemperatureSBECE(calibrator.NewData([]float64{80, -80, -80, 80}, 2, []int32{0, 1}, nil),
		opts)
	if err != nil || c.T() != 1 || r.OnBound || len(r.SBECE.Minima) != 1 {
		t.Errorf("got T %v, %+v, %+v, %v", c.T(), r, r.SBECE, err)
	}
}
