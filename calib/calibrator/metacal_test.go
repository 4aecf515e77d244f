package calibrator_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/internal/testsize"
)

func metaCal(t *testing.T, z []float64, k int, y []int32, set calibrator.MetaCalSettings) (*calibrator.MetaCal,
	calibrator.Report) {
	t.Helper()
	c, r, err := calibrator.FitMetaCal(calibrator.NewData(z, k, y, nil), set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func TestMetaCalApply(t *testing.T) {
	c, err := calibrator.Decode([]byte(`{"version":1,"method":"metacal","params":{"constraint":"miscoverage",` +
		`"target":0.05,"threshold":0.5,"base":{"version":1,"method":"temperature","temperature":2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := c.(*calibrator.MetaCal)
	p, q := make([]float64, 2), make([]float64, 2)
	for g := 0.0; g < 5; g += 0.01 {
		z := []float64{0, g}
		s := sig(g)
		keep := -s*math.Log(s)-(1-s)*math.Log(1-s) <= 0.5
		c.Apply(p, z)
		q[0], q[1] = 0.5, 0.5
		if keep {
			temperature(t, 2).Apply(q, z)
		}
		if !reflect.DeepEqual(p, q) || m.Accepts(z) != keep {
			t.Errorf("gap %g: got %v, %v, want %v, %v", g, p, m.Accepts(z), q, keep)
		}
	}
	for _, z := range [][]float64{{math.NaN(), 1}, {1, math.NaN()}} {
		if m.Accepts(z) {
			t.Errorf("%v is accepted", z)
		}
	}
}

func TestMetaCalDecodeIsStrict(t *testing.T) {
	const ts = `{"version":1,"method":"temperature","temperature":2}`
	whole := func(constraint, target, threshold, base string) string {
		return `{"version":1,"method":"metacal","params":{"constraint":` + constraint + `,"target":` + target +
			`,"threshold":` + threshold + `,"base":` + base + `}}`
	}
	good := whole(`"accuracy"`, "0.9", "1e6", ts)
	c, err := calibrator.Decode([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if h, some := c.(*calibrator.MetaCal).Threshold(); some || h < 1e6 {
		t.Errorf("threshold %g, %v, want none", h, some)
	}
	for _, text := range []string{
		whole(`"other"`, "0.9", "0.5", ts), whole(`1`, "0.9", "0.5", ts), whole(`"accuracy"`, "1.1", "0.5", ts),
		whole(`"accuracy"`, "0.9", "-2", ts), whole(`"accuracy"`, "0.9", "1e7", ts),
		whole(`"accuracy"`, "0.9", "0.5", "null"),
		whole(`"accuracy"`, "0.9", "0.5", "3"), whole(`"accuracy"`, "0.9", "0.5", "{}"),
		whole(`"accuracy"`, "0.9", "0.5", good),
		whole(`"accuracy"`, "0.9", "0.5", `{"version":1,"method":"temperature","temperature":0}`),
		whole(`"accuracy"`, "0.9", "0.5", `{"version":1,"method":"vector","params":{"w":[1,1],"b":[0,0]}}`),
		whole(`"accuracy"`, "0.9", "0.5", ts[:len(ts)-1]+`,"extra":1}`),
		`{"version":1,"method":"metacal","params":{"constraint":"accuracy","target":0.9,"threshold":0.5}}`,
		`{"version":1,"method":"spline","params":{"confidences":[0.5,0.5],"values":[0,1]}}`,
		`{"version":1,"method":"spline","params":{"confidences":[0.5],"values":[2]}}`,
		`{"version":1,"method":"spline","params":{"confidences":[],"values":[]}}`,
		`{"version":1,"method":"intra_order_preserving","params":{"knots":[1],"slopes":[1]}}`,
		`{"version":1,"method":"intra_order_preserving","params":{"knots":[0,0],"slopes":[1,1]}}`,
		`{"version":1,"method":"intra_order_preserving","params":{"knots":[0],"slopes":[0]}}`,
		`{"version":1,"method":"intra_order_preserving","params":{"knots":[],"slopes":[]}}`,
		`{"version":1,"method":"intra_order_preserving","params":{"knots":[0,1],"slopes":[1]}}`,
	} {
		if c, err := calibrator.Decode([]byte(text)); !errors.Is(err, calibrator.ErrFormat) {
			t.Errorf("%s: got %v, %v, want ErrFormat", text, c, err)
		}
	}
	deep := strings.Repeat(`{"version":1,"method":"metacal","params":{"constraint":"accuracy","target":0.9,`+
		`"threshold":1,"base":`, 3000)
	if _, err := calibrator.Decode([]byte(deep + ts + strings.Repeat("}}", 3000))); !errors.Is(err,
		calibrator.ErrFormat) {
		t.Errorf("deep nesting: %v, want ErrFormat", err)
	}
}

func TestMetaCalBase(t *testing.T) {
	z, y := synthetic(3000, 5, 2, 17)
	rows := 0
	set := calibrator.MetaCalSettings{RankEvery: 10,
		Base: func(z []float64, k int, y []int32, w []float64) (calibrator.Calibrator, error) {
			rows = len(y)
			c, _, err := calibrator.FitEnsemble(calibrator.NewData(z, k, y, w), opts)
			return c, err
		}}
	c, r := metaCal(t, z, 5, y, set)
	// The base is fitted on the kept rows that are no ranking rows, and by itself gives the same.
	var bz []float64
	var by []int32
	for i, v := range y {
		_, turn := math.Modf(float64(i) * (math.Sqrt(5) - 1) / 2)
		if row := z[5*i : 5*i+5]; turn >= 0.1 && c.Accepts(row) {
			bz, by = append(bz, row...), append(by, v)
		}
	}
	want, _, err := calibrator.FitEnsemble(calibrator.NewData(bz, 5, by, nil), opts)
	if err != nil || rows != len(by) || !reflect.DeepEqual(c.Base(), calibrator.Calibrator(want)) {
		t.Errorf("base %v on %d rows, want %v on %d, %v", c.Base(), rows, want, len(by), err)
	}
	if constraint, target := c.Bound(); constraint != calibrator.MiscoverageRate || target != 0.05 ||
		len(r.Warnings) > 0 {
		t.Errorf("%s %g, %v", constraint, target, r.Warnings)
	}
	checkRoundTrip4 := func(c calibrator.Calibrator) {
		text, err := calibrator.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := calibrator.Decode(text); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	checkRoundTrip4(c)
	refused := errors.New("refused")
	for name, base := range map[string]func([]float64, int, []int32, []float64) (calibrator.Calibrator, error){
		"vector": func(z []float64, k int, y []int32, w []float64) (calibrator.Calibrator, error) {
			c, _, err := calibrator.FitVector(calibrator.NewData(z, k, y, w), opts)
			return c, err
		},
		"metacal": func([]float64, int, []int32, []float64) (calibrator.Calibrator, error) { return c, nil },
		"nil":     func([]float64, int, []int32, []float64) (calibrator.Calibrator, error) { return nil, nil },
		"refused": func([]float64, int, []int32, []float64) (calibrator.Calibrator, error) { return nil, refused },
	} {
		set.Base = base
		_, _, err := calibrator.FitMetaCal(calibrator.NewData(z, 5, y, nil), set, opts)
		if err == nil || name == "refused" && !errors.Is(err, refused) {
			t.Errorf("base %s: %v", name, err)
		}
	}
}

func TestMetaCalRefuses(t *testing.T) {
	z, y := synthetic(300, 4, 2, 18)
	unequal := slices.Repeat([]float64{1}, 300)
	unequal[0] = 2 // row 0 always sets the threshold
	accuracy := calibrator.CoverageAccuracy
	for name, set := range map[string]calibrator.MetaCalSettings{
		"constraint": {Constraint: "x"}, "target 1": {Target: 1}, "negative target": {Target: -0.1},
		"NaN target":      {Target: math.NaN()},
		"infinite target": {Target: math.Inf(1)}, "delta 1": {Delta: 1}, "negative delta": {Delta: -0.1},
		"NaN delta":  {Delta: math.NaN()},
		"rank every": {RankEvery: -1}, "accuracy above 1": {Constraint: accuracy, Target: 1.5},
		"accuracy out of reach": {Constraint: accuracy, Target: 0.9999},
		"proof out of reach":    {Constraint: accuracy, Target: 0.99, Delta: 0.01},
		"unequal weights":       {Delta: 0.1, RankEvery: 3}, "unequal weights, accuracy": {Constraint: accuracy,
			Delta: 0.1, RankEvery: 1},
	} {
		w := unequal
		if !strings.HasPrefix(name, "unequal") {
			w = nil
		}
		if c, _, err := calibrator.FitMetaCal(calibrator.NewData(z, 4, y, w), set, opts); err == nil || c != nil ||
			!strings.HasPrefix(err.Error(), "fit metacal: ") {
			t.Errorf("%s: got %v, %v", name, c, err)
		}
	}
	c, r := metaCal(t, z[:40], 4, y[:10], calibrator.MetaCalSettings{})
	if _, some := c.Threshold(); some ||
		!slices.ContainsFunc(r.Warnings, func(s string) bool { return strings.Contains(s, "no row is given up") }) {
		t.Errorf("ten rows: %s, %v", c.Describe(), r.Warnings)
	}
}

// TestMetaCalOnRealLogits fits on a half and holds the other half to the constraint, over several splits. With m rows
// setting the threshold and n rows tested, the tested share has a variance of q(1-q)(1/m + 1/n).
func TestMetaCalOnRealLogits(t *testing.T) {
	testsize.Slow(t)
	const splits, sigmas = 6, 3.5
	for _, set := range realSets {
		if testing.Short() && set.k > 10 {
			continue
		}
		s, y := realdata.Scores(t, set.file, set.scores, "test_labels")
		z, k, h := widen(s), set.k, len(y)/2
		for _, m := range []calibrator.MetaCalSettings{
			{}, {Target: 0.1, RankEvery: 1}, {Constraint: calibrator.CoverageAccuracy},
			{Constraint: calibrator.CoverageAccuracy, RankEvery: 1},
			{Constraint: calibrator.CoverageAccuracy, RankEvery: 1, Delta: 0.05},
		} {
			var reached, kept float64
			for split := range splits {
				perm := rand.New(rand.NewPCG(uint64(split), 3)).Perm(len(y))
				pz, py := make([]float64, 0, len(z)), make([]int32, 0, len(y))
				for _, i := range perm {
					pz, py = append(pz, z[i*k:(i+1)*k]...), append(py, y[i])
				}
				c, _ := metaCal(t, pz[:h*k], k, py[:h], m)
				every := m.RankEvery
				if every == 0 {
					every = 10
				}
				constraint, target := c.Bound()
				var n, hits [2]float64 // of the kept, the given up
				for i := h; i < len(py); i++ {
					row, at := pz[i*k:(i+1)*k], 1
					if c.Accepts(row) {
						at = 0
					}
					if n[at]++; argmax(row) == int(py[i]) {
						hits[at]++
					}
				}
				fitted, tested := float64(h)/float64(every), n[0]
				value := hits[0] / n[0]
				missed := target - value
				if constraint == calibrator.MiscoverageRate { // only right rows count
					tested = hits[0] + hits[1]
					value = hits[1] / tested
					missed = value - target
				}
				fitted *= tested / float64(h)
				if slack := sigmas * math.Sqrt(target*(1-target)*(1/fitted+1/tested)); missed > slack {
					t.Errorf("%s %s split %d: %.4f, target %.4f, slack %.4f", set.scores, constraint, split, value,
						target, slack)
				}
				reached, kept = reached+value/splits, kept+n[0]/float64(h)/splits
				if split == splits-1 { // of this split only
					ts, _, err := calibrator.FitTemperature(calibrator.NewData(pz[:h*k], k, py[:h], nil), opts)
					if err != nil {
						t.Fatal(err)
					}
					_, _, ece := score(c, pz[h*k:], k, py[h:])
					_, _, ece0 := score(ts, pz[h*k:], k, py[h:])
					t.Logf("%-12s %-11s δ %.2f every %2d: mean %.4f, target %.4f, kept %.3f, ECE %.4f, T alone %.4f",
						set.scores, constraint, m.Delta, every, reached, target, kept, ece, ece0)
				}
			}
		}
	}
}
