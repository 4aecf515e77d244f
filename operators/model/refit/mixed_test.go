package refit

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// rowsInRuns returns n rows of k classes, each class for length rows; 1 = in no order. The model gives the right class
// two nats more than the others, and another class three nats more in a quarter of the rows.
func rowsInRuns(seed uint64, n, k, length int) []acc.SampleRow {
	r := rand.New(rand.NewPCG(seed, 31))
	out := make([]acc.SampleRow, n)
	y := 0
	for i := range out {
		if i%length == 0 {
			y = r.IntN(k)
		}
		z := make([]float32, k)
		z[y] = 2
		if r.IntN(4) == 0 {
			z[(y+1)%k] = 3
		}
		ts := batchtest.Start + int64(i)*second/10
		out[i] = acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: ts, LabelTS: ts, W: 1, Y: int32(y), Z: z}
	}
	return out
}

// TestSharesError: for runs of L rows of one of K classes, n/L of them, the variance of a share p is p(1 - p)L/n, so
// the error is √((K - 1)L/n), without the part of single rows, L = 1.
func TestSharesError(t *testing.T) {
	t.Parallel()
	const n, k = 6000, 5
	for _, length := range []int{1, 20, 100} {
		var square float64
		const draws = 50
		for seed := range uint64(draws) {
			counts := make([][mixedParts]float64, k)
			for i, row := range rowsInRuns(seed, n, k, length) {
				counts[row.Y][i*mixedParts/n]++
			}
			e := sharesError(counts)
			square += e * e / draws
		}
		want := math.Sqrt(float64((k-1)*(length-1)) / n)
		if got := math.Sqrt(square); math.Abs(got-want) > .15*want+.01 {
			t.Errorf("runs of %d: error %.4f, want %.4f", length, got, want)
		}
	}
}

// TestClassesInRuns: methods that learn something of each class are candidates of rows in no order and in short runs,
// and not of rows in long runs, nor where a class is missing.
func TestClassesInRuns(t *testing.T) {
	t.Parallel()
	all := []string{"temperature", "ensemble_temperature", "beta", "dirichlet", "isotonic"}
	others := []string{"temperature", "ensemble_temperature", "beta", "isotonic"}
	for _, c := range []struct {
		method  string
		length  int
		missing bool
		want    []string
		ends    string
	}{
		{method: "auto", length: 1, want: all},
		{method: "auto", length: 2, want: all},
		{method: "auto", length: 250, want: others},
		{method: "auto", length: 1, missing: true, want: others},
		{method: "vector", length: 500, ends: "no change: vector: class"},
		{method: "vector", length: 100, ends: "no change: vector: classes come in runs"},
		{method: "vector", length: 1, missing: true, ends: "no change: vector: class 4 has 0 of"},
		{method: "temperature", length: 250, want: []string{"temperature"}},
	} {
		name := fmt.Sprintf("%s, runs of %d, missing %t", c.method, c.length, c.missing)
		cfg := testConfig()
		cfg.Method, cfg.MaxRows = c.method, 5000
		x := newFixture(t, cfg, 5)
		rows := rowsInRuns(5, 5000, 5, c.length)
		if c.missing {
			for i := range rows {
				rows[i].Y %= 4
			}
		}
		x.must(x.begin(rows, reasonPeriod, &stage.Pane{Index: 1, End: rows[len(rows)-1].TS + 1}))
		if c.ends != "" {
			d := x.published(pipeline.StreamDecisions)
			if x.run != nil || len(d) != 1 || !strings.HasPrefix(d[0].Outcome, c.ends) {
				t.Errorf("%s: decisions %+v, want %q", name, d, c.ends)
			}
			continue
		}
		if x.run == nil || !slices.Equal(x.run.methods, c.want) {
			t.Errorf("%s: candidates %+v, want %v", name, x.run, c.want)
		}
		x.stage.Close()
	}
}

// biased returns a vector calibrator that adds b to the logit of a class.
func biased(t testing.TB, k, class int, b float64) (calibrator.Calibrator, []byte) {
	t.Helper()
	w, bias := slices.Repeat([]float64{1}, k), make([]float64, k)
	bias[class] = b
	params := map[string]any{"w": w, "b": bias}
	e, err := json.Marshal(map[string]any{"version": 1, "method": "vector", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	c, err := calibrator.Decode(e)
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

// TestCandidatesThatLoseAccuracy: a candidate that learns classes is unsafe if it loses accuracy over all rows or on
// the rows of one class, and if the rows after its fit come in runs.
func TestCandidatesThatLoseAccuracy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		b      float64
		length int
		want   string
	}{
		{"no class loses", 0, 1, ""},
		{"the class gains what others lose", 2.5, 1, "accuracy may fall"},
		{"rows after the fit in runs", 0, 500, "classes come in runs"},
	} {
		x := newFixture(t, testConfig(), 3)
		fit := rowsInRuns(5, 2000, 3, 1)
		x.key.Sample = append(slices.Clone(fit), rowsInRuns(6, 2000, 3, c.length)...)
		for i := range x.key.Sample {
			x.key.Sample[i].TS = batchtest.Start + int64(i)
		}
		cal, encoded := biased(t, 3, 1, c.b)
		x.run = &run{fitFrom: batchtest.Start, fitTo: batchtest.Start + 1999}
		why, err := x.run.unsafe(&candidate{fitResult: fitResult{method: "vector", cal: cal, encoded: encoded}},
			x.key, &x.stage.cfg)
		if err != nil || !strings.HasPrefix(why, c.want) || c.want == "" && why != "" {
			t.Errorf("%s: %q, %v; want %q", c.name, why, err, c.want)
		}
		keeps := &candidate{fitResult: fitResult{method: "temperature", cal: cal}}
		if why, err := x.run.unsafe(keeps, x.key, &x.stage.cfg); why != "" || err != nil {
			t.Errorf("%s: a temperature: %q, %v", c.name, why, err)
		}
	}
	// One class of ten loses all of its rows, and all together gain.
	x := newFixture(t, testConfig(), 3)
	rows := rowsInRuns(7, 3000, 3, 1)
	for i := range rows {
		rows[i].Z = []float32{0, 0, 0}
		rows[i].Z[rows[i].Y] = 1
		if rows[i].Y == 2 && i%10 > 0 { // a rare class, whose rows the model knows
			rows[i].Y = 0
		}
	}
	cal, _ := biased(t, 3, 0, 1.5)
	why, err := loses(x.version, &x.stage.cfg, &candidate{fitResult: fitResult{cal: cal}}, rows)
	if err != nil || !strings.HasPrefix(why, "accuracy may fall") && !strings.HasPrefix(why, "accuracy of class") {
		t.Errorf("a class that loses all: %q, %v", why, err)
	}
}

// TestAccuracyIsTakenBack: a calibrator that answers "always this class" is taken back within a pane of rows, also
// after a restart. One that gained on all rows at the cost of a class stays while that class comes in a run.
func TestAccuracyIsTakenBack(t *testing.T) {
	t.Parallel()
	pane := func(rows []acc.SampleRow, at int64) *stage.Pane {
		out := slices.Clone(rows)
		for i := range out {
			out[i].TS = at
		}
		return &stage.Pane{Rows: out, Labelled: int64(len(out)), End: at + paneLength}
	}
	for _, c := range []struct {
		name     string
		b        float64
		class    int32 // of the rows of the pane; -1 = all
		rolled   bool
		restored bool
	}{
		{"always this class", 9, -1, true, false},
		{"always this class, restored", 9, -1, true, true},
		{"a run of a class that is known to lose", 2.5, 0, false, false},
		{"as accurate as before", 0, -1, false, false},
	} {
		cfg := testConfig()
		cfg.RollbackPanes = 1_000_000
		x := newFixture(t, cfg, 3)
		rows := rowsInRuns(9, 3000, 3, 1)
		if c.b < 9 {
			x.key.Sample = rows
		}
		cal, encoded := biased(t, 3, 1, c.b)
		at := batchtest.Start + 1000*second
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, cal, encoded, at))
		if c.restored {
			r := binenc.NewReader(x.monitor.append(nil))
			x.monitor = &monitor{}
			x.must(x.monitor.restore(&r))
		}
		var next []acc.SampleRow
		for _, row := range rowsInRuns(10, 1000, 3, 1) {
			if (c.class < 0 || row.Y == c.class) && len(next) < 100 {
				next = append(next, row)
			}
		}
		rolled, err := x.stepMonitor(pane(next, at+1))
		if err != nil || rolled != c.rolled {
			t.Errorf("%s: rolled back %t, %v; want %t", c.name, rolled, err, c.rolled)
		}
		if d := x.published(pipeline.StreamCalibrators); c.rolled &&
			!strings.HasPrefix(d[len(d)-1].Outcome, "published: rollback to the identity, accuracy 0.") {
			t.Errorf("%s: %s", c.name, d[len(d)-1].Outcome)
		}
	}
}
