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
			x.key.Sample[i].LabelTS = x.key.Sample[i].TS
		}
		cal, encoded := biased(t, 3, 1, c.b)
		x.run = &run{fitFrom: batchtest.Start, fitTo: batchtest.Start + 1999}
		why, err := x.run.unsafe(x.publisher,
			&candidate{fitResult: fitResult{method: "vector", cal: cal, encoded: encoded}})
		if err != nil || !strings.HasPrefix(why, c.want) || c.want == "" && why != "" {
			t.Errorf("%s: %q, %v; want %q", c.name, why, err, c.want)
		}
		keeps := &candidate{fitResult: fitResult{method: "temperature", cal: cal}}
		if why, err := x.run.unsafe(x.publisher, keeps); why != "" || err != nil {
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
	why, err := loses(x.publisher, &candidate{fitResult: fitResult{cal: cal}}, rows)
	if err != nil || !strings.HasPrefix(why, "accuracy may fall") && !strings.HasPrefix(why, "accuracy of class") {
		t.Errorf("a class that loses all: %q, %v", why, err)
	}
}

// halfRight returns n rows of three classes. The model is right on a share of them, on a fourth of these by two nats
// and on the others by four; the other rows it takes for class 0.
func halfRight(seed uint64, n int, right float64) []acc.SampleRow {
	r := rand.New(rand.NewPCG(seed, 11))
	out := make([]acc.SampleRow, n)
	for i := range out {
		y := int32(1 + r.IntN(2))
		z := make([]float32, 3)
		if z[y] = 4; i%4 == 0 {
			z[y] = 2
		}
		if r.Float64() >= right {
			z[0] = 8
		}
		out[i] = acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, W: 1, Y: y, Z: z}
	}
	return out
}

// TestFallIsTakenBackWithinOnePane: a publication under which the accuracy of the next rows is .02, and of the
// calibrator before .95, is taken back after the first pane of 100 rows, also where that learnt classes, and so is a
// fall by a fourth. It needs no outlook, and a fall that is known of the rows before does not hold it up.
func TestFallIsTakenBackWithinOnePane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		bias   float64 // towards class 0: above 4 it is the answer to every row
		right  float64 // share of the rows that the calibrator before answers well
		rows   int     // of the sample that were of class 0 only
		rolled bool
	}{
		{"to .02", 20, .95, 0, true},
		{"to .02, after a run of one class", 20, .95, 1000, true},
		{"by a fourth", 2.5, .95, 0, true},
		{"no fall", 0, .95, 0, false},
	} {
		cfg := defaults()
		cfg.RollbackPanes = 1_000_000
		x := newFixture(t, cfg, 3)
		at := batchtest.Start + 1000*second
		before, encoded := biased(t, 3, 2, .1) // one that learns classes, as the identity is no test of trust
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, before, encoded, at-paneLength))
		for i := range c.rows {
			row := acc.SampleRow{TS: at - int64(c.rows-i), W: 1, Z: []float32{4, 0, 0}}
			if i%10 == 0 { // known to fall: of the other classes
				row.Y, row.Z = 1+int32(i/10%2), []float32{0, 0, 0}
				row.Z[row.Y] = 4
			}
			x.key.Sample = append(x.key.Sample, row)
		}
		cal, encoded := biased(t, 3, 0, c.bias)
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, cal, encoded, at))
		rows := halfRight(3, 100, c.right)
		if c.bias > 4 { // two rows are still answered well
			for i := range 2 {
				rows[i].Y, rows[i].Z = 0, []float32{4, 0, 0}
			}
		}
		for i := range rows {
			rows[i].TS = at + 1
		}
		rolled, err := x.stepMonitor(&stage.Pane{Rows: rows, Labelled: 100, End: at + paneLength})
		if err != nil || rolled != c.rolled {
			t.Errorf("%s: rolled back %t, %v; want %t", c.name, rolled, err, c.rolled)
		}
		if f := x.version.Newest(); c.rolled && string(f.Encoded) == string(encoded) {
			t.Errorf("%s: revision %d is in force still", c.name, f.Revision)
		}
	}
}

// TestFalseTakeBacks: while a publication is as accurate as the calibrator before it, the e-process on accuracy is ever
// at least 1/α, looked at after every row, with probability at most α. It is where rows that only one of them answers
// well are common, and where they are rare.
func TestFalseTakeBacks(t *testing.T) {
	t.Parallel()
	const streams, n, alpha = 2000, 3000, .05
	for _, discordant := range []float64{.02, .3} {
		r, taken := rand.New(rand.NewPCG(17, uint64(100*discordant))), 0
		for range streams {
			var e wealth
			for i := 0; i < n; i++ {
				x := 0.
				if u := r.Float64(); u < discordant {
					if x = 1; u < discordant/2 {
						x = -1
					}
				}
				e.bet(.9 * x) // the least allowance, 0: with one, there are fewer
				if e.mean() >= math.Log(1/alpha) {
					taken++
					break
				}
			}
		}
		if share := float64(taken) / streams; share > alpha+2*math.Sqrt(alpha*(1-alpha)/streams) || taken == 0 {
			t.Errorf("%v of rows discordant: %.4f are taken back, want at most %v, and some", discordant, share, alpha)
		}
	}
}

// TestAccuracyIsTakenBack: a calibrator that answers "always this class" is taken back within a pane of rows, also
// after a restart. Only weights of classes may lose more of a class than a candidate may, as was known of them.
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
		{"a run of a class that loses more than any candidate may", 2.5, 0, true, false},
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
			x.must(x.monitor.restore(&r, 3))
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
	weights, err := calibrator.NewClassWeights(calibrator.Identity{}, []float64{1, math.Exp(2.5), 1})
	if err != nil {
		t.Fatal(err)
	}
	vector, encoded := biased(t, 3, 1, 2.5) // the same map
	for want, cal := range map[float64]calibrator.Calibrator{.75: weights, classFalls: vector} {
		x := newFixture(t, testConfig(), 3)
		x.key.Sample = rowsInRuns(9, 3000, 3, 1)
		x.must(x.putInForce(&record.Calibrator{Reason: reasonAlarm}, cal, encoded, batchtest.Start))
		if got := x.monitor.baselines[0].allowed[0]; math.Abs(got-want-classMargin) > .03 {
			t.Errorf("%s may lose %.3f of a class, want %.3f", cal.Method(), got, want+classMargin)
		}
	}
}
