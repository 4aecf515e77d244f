package refit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
)

const quickPane = 50 // rows of a pane in the tests of the first answer

// stepQuickly passes rows to stepQuick, pane by pane, and returns after how many of them it published; 0 = never.
func (f *fixture) stepQuickly(seed uint64, n int, sharpness float64) int {
	f.t.Helper()
	return f.stepWith(sample(batchtest.Rows(seed, batchtest.Options{N: n, Sharpness: sharpness})))
}

// stepWith is stepQuickly with given rows, which are predicted a second apart.
func (f *fixture) stepWith(rows []acc.SampleRow) int {
	f.t.Helper()
	start, n := batchtest.Start+f.key.Labelled*second, len(rows)
	for i := 0; i < n; i += quickPane {
		pane := rows[i : i+quickPane]
		for j := range pane {
			pane[j].TS = start + int64(i+j)*second
		}
		f.key.Labelled += quickPane
		f.key.Keep(slices.Clone(pane), sampleRows)
		in := &stage.Pane{End: pane[quickPane-1].TS + 1, Rows: pane, Labelled: quickPane}
		published, err := stepQuick(f.State, in)
		f.must(err)
		if published {
			return i + quickPane
		}
	}
	return 0
}

// TestWeightsOutlastLabelsOfBefore: class weights that came before labels are not judged by labels of rows from before
// them, however late; by those of rows since, they are.
func TestWeightsOutlastLabelsOfBefore(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	weights, err := calibrator.NewClassWeights(calibrator.Identity{}, []float64{1, 1, 1, 30})
	x.must(err)
	const late = 1000 // rows from before the weights whose labels come after them
	x.version.Calibrators = append(x.version.Calibrators, &stage.InForce{Revision: 1, Cal: weights, Reason: reasonShift,
		From: batchtest.Start + late*second})
	if after := x.stepQuickly(231, late, 1); after != 0 {
		t.Errorf("replaced by a temperature after %d rows from before it", after)
	}
	if after := x.stepQuickly(232, 1000, 1); after == 0 {
		t.Error("weights that are wrong stay")
	}
}

// TestFirstAnswerOfManyClasses: where a class has a row or two in the sample, the answer to a change is as quick as
// with few classes, and of rows since the change only.
func TestFirstAnswerOfManyClasses(t *testing.T) {
	t.Parallel()
	const classes = 1000
	rows := func(seed uint64, n int, sharpness float64) []acc.SampleRow {
		return sample(batchtest.Rows(seed, batchtest.Options{N: n, K: classes, Sharpness: sharpness}))
	}
	x := newFixture(t, testConfig(), classes)
	if after := x.stepWith(rows(221, 2000, 1)); after != 0 {
		t.Fatalf("of calibrated rows, published after %d", after)
	}
	if after := x.stepWith(rows(222, 1500, 3)); after < 100 || after > 600 {
		t.Fatalf("published after %d rows, want 100 to 600", after)
	}
	if got := x.version.Newest().Cal.(calibrator.Temperature).T(); math.Abs(got-3) > .7 {
		t.Errorf("temperature %v, want about 3", got)
	}
}

// TestFirstAnswerOnItsBound: labels that have nothing to do with the scores would have a higher temperature than there
// may be, and the record says so.
func TestFirstAnswerOnItsBound(t *testing.T) {
	t.Parallel()
	for _, random := range []bool{false, true} {
		x := newFixture(t, testConfig(), 4)
		rows := sample(batchtest.Rows(203, batchtest.Options{N: 1000, Sharpness: 3}))
		for i := range rows {
			if random {
				rows[i].Y = int32(i % 4)
			}
		}
		if x.stepWith(rows) == 0 {
			t.Fatal("nothing was published")
		}
		d := x.published(pipeline.StreamCalibrators)[0]
		if got := strings.Contains(d.Outcome, "20 (the bound) of "); got != random || d.Evidence.OnBound != random {
			t.Errorf("random labels %v: on its bound %v, %q", random, d.Evidence.OnBound, d.Outcome)
		}
	}
}

// TestFirstAnswer: an overconfident model gets a temperature after 100 to 500 rows. When the cause is gone, one near 1
// takes its place as fast, and refits that follow use rows from after that only.
func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	if after := x.stepQuickly(201, 1000, 3); after < 100 || after > 500 {
		t.Fatalf("published after %d rows, want 100 to 500", after)
	}
	if got := x.version.Newest().Cal.(calibrator.Temperature).T(); math.Abs(got-3) > .5 {
		t.Errorf("temperature %v, want about 3", got)
	}
	x.stepQuickly(202, 2000, 3)
	healed := batchtest.Start + x.key.Labelled*second
	for len(x.published(pipeline.StreamCalibrators)) < 4 {
		// Saved and restored, it goes on as before.
		b, err := x.State.Append(nil)
		x.must(err)
		back := x.stage.NewState(x.version)
		in := binenc.NewReader(b)
		x.must(back.Restore(&in))
		x.State = back
		if x.stepQuickly(uint64(x.key.Labelled), 100, 1); batchtest.Start+x.key.Labelled*second > healed+600*second {
			break
		}
	}
	c := x.published(pipeline.StreamCalibrators)
	last := c[len(c)-1]
	if last.Reason != "quick" || math.Abs(last.Evidence.Temperature-1) > .4 {
		t.Errorf("600 rows after the change %+v is in force, want a temperature of about 1", last)
	}
	if since := (x.changes.latest() - healed) / second; since < -150 || since > 300 {
		t.Errorf("later refits begin %d rows after the change", since)
	}
}

// TestMixtureIsRefined: where labels become wrong, the first mixture is of few rows, some of them from before. It is
// refined when its rows have doubled, although no temperature gains over it.
func TestMixtureIsRefined(t *testing.T) {
	t.Parallel()
	const k, wrong, sharp = 4, .3, 4
	cfg := testConfig()
	cfg.Method = methodAuto
	x, r, first := newFixture(t, cfg, k), rand.New(rand.NewPCG(7, 7)), 0.
	for pane := range uint64(80) {
		rows := sample(batchtest.Rows(211+pane, batchtest.Options{N: quickPane, Sharpness: sharp}))
		for i := range rows {
			for j := range rows[i].Z {
				rows[i].Z[j] *= sharp
			}
			if pane >= 20 && r.Float64() < wrong {
				rows[i].Y = (rows[i].Y + 1 + r.Int32N(k-1)) % k
			}
		}
		if x.stepWith(rows) > 0 && first == 0 {
			first = uniform(x.version.Newest().Cal)
		}
	}
	// The label is another one with probability w_3(k-1)/k.
	want := wrong * k / (k - 1.)
	if last := uniform(x.version.Newest().Cal); math.Abs(last-want) > .04 || first == 0 || first == last {
		t.Errorf("after 3,000 rows the weight of the constant is %.3f, first it was %.3f; want %.3f", last, first, want)
	}
}

// uniform is the weight of the constant in a mixture; 0 = it is none.
func uniform(cal calibrator.Calibrator) float64 {
	if m, ok := cal.(*calibrator.Ensemble); ok {
		return m.Weights()[2]
	}
	return 0
}

// TestNoFirstAnswer: nothing takes force by itself where it must be served to nobody, or to few, first, where another
// method is asked for, or where a person has pinned the calibrator.
func TestNoFirstAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"canary": func(x *fixture) { x.stage.cfg.CanaryShare = .1 },
		"shadow": func(x *fixture) { x.stage.cfg.ShadowFor = time.Second },
		"method": func(x *fixture) { x.stage.cfg.Method = "vector" },
		"none":   func(x *fixture) { x.stage.cfg.Method = MethodNone },
		"pin":    func(x *fixture) { x.pin = &pin{by: "somebody"} },
	} {
		x := newFixture(t, testConfig(), 4)
		change(x)
		if after := x.stepQuickly(201, 1000, 3); after != 0 {
			t.Errorf("%s: published after %d rows", name, after)
		}
	}
}

// TestFirstAnswersOnCalibratedRows: while the calibrator in force is right, the evidence reaches 1/α at most α·n/h
// times among n rows.
func TestFirstAnswersOnCalibratedRows(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const runs, n, h, alpha = 20, 5000, 100., .5
	v := &stage.Version{Model: "m", Name: "v", K: 4}
	reached := 0
	for seed := range uint64(runs) {
		k, q := &stage.Key{Version: v, K: 4}, newQuick(&publisher{version: v})
		rows := sample(batchtest.Rows(300+seed, batchtest.Options{N: n, Sharpness: 1}))
		for i := 0; i < n; i += quickPane {
			pane := rows[i : i+quickPane]
			if err := q.bet(pane, h); err != nil {
				t.Fatal(err)
			}
			k.Keep(slices.Clone(pane), sampleRows)
			if err := q.learn(k, quickPane); err != nil {
				t.Fatal(err)
			}
			if q.evidence() >= math.Log(1/alpha) {
				reached++
				q.restart()
			}
		}
	}
	if most := alpha * n / h * runs; reached == 0 || float64(reached) > most {
		t.Errorf("reached %d times, want 1 to %.0f", reached, most)
	}
}

// TestPatience: the evidence must last longer with every turn, and longest where a richer method is in force. Turns are
// forgotten.
func TestPatience(t *testing.T) {
	t.Parallel()
	q := newQuick(nil)
	temperature := func(v float64) calibrator.Calibrator {
		c, err := calibrator.NewTemperature(v)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := func(current calibrator.Calibrator, next float64, rows int64, up, turns int) {
		t.Helper()
		if r, u, n := q.patience(current, next); r != rows || u != up || n != turns {
			t.Errorf("%d rows, direction %d, %d turns; want %d, %d, %d", r, u, n, rows, up, turns)
		}
	}
	want(nil, 2, 100, 1, 0)
	q.up = 1
	want(temperature(2), 3, 100, 1, 0)
	want(temperature(2), 1, 150, -1, 1)
	q.turn(1)
	want(temperature(2), 3, 150, 1, 0)
	want(&calibrator.Platt{}, 3, 525, 1, richTurns)
	q.rows = turnRows + 1
	want(temperature(2), 3, 100, 1, 0)
	if q.turn(2 * keptTurns); len(q.turns) != keptTurns {
		t.Errorf("%d turns are kept", len(q.turns))
	}
	want(temperature(2), 3, mostPatience, 1, 0)
}

// inRuns returns n rows of k classes that come in runs. The model is overconfident on a fourth of the classes and
// always right on the others: a temperature gains in the mean and loses in most runs.
func inRuns(seed uint64, n, k, run int) []acc.SampleRow {
	r := rand.New(rand.NewPCG(seed, 9))
	right := make([]float64, k)
	for y := range right {
		right[y] = 1
		if y%4 == 0 {
			right[y] = .4
		}
	}
	out, y := make([]acc.SampleRow, n), 0
	for i := range out {
		if i%run == 0 {
			y = r.IntN(k)
		}
		z, top := make([]float32, k), y
		for j := range z {
			z[j] = float32(r.NormFloat64())
		}
		if r.Float64() > right[y] {
			top = r.IntN(k)
		}
		z[top] += 12
		out[i] = acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: batchtest.Start + int64(i)*second, W: 1,
			Y: int32(y), Z: z}
	}
	return out
}

// BenchmarkFirstAnswer measures a label pane of 100 rows beside a full sample: of classes in runs, where temperatures
// have evidence and are refused, and of a calibrated stream.
func BenchmarkFirstAnswer(b *testing.B) {
	const kept, rows, pane = 8192, 6000, 100
	for name, make := range map[string]func(k int) []acc.SampleRow{
		"runs": func(k int) []acc.SampleRow { return inRuns(1, kept+rows, k, 250) },
		"mixed": func(k int) []acc.SampleRow {
			return sample(batchtest.Rows(1, batchtest.Options{N: kept + rows, K: k, Step: second}))
		},
	} {
		for _, k := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/K=%d", name, k), func(b *testing.B) {
				x, all := newFixture(b, defaults(), k), make(k)
				for i := rows; b.Loop(); i += pane {
					if i == rows { // again from the start
						i, x.quick, x.key.Sample = 0, nil, slices.Clone(all[:kept])
					}
					in := &stage.Pane{Rows: all[kept+i : kept+i+pane], Labelled: pane}
					in.End = in.Rows[pane-1].TS + 1
					x.key.Keep(slices.Clone(in.Rows), kept)
					if published, err := stepQuick(x.State, in); published || err != nil {
						b.Fatalf("row %d: published or %v", i, err)
					}
				}
				b.ReportMetric(float64(x.quick.fits.rows)/float64(x.quick.rows), "rows-fitted/row")
			})
		}
	}
}

// defaults are the bounds of the default configuration.
func defaults() Config {
	return Config{Method: methodAuto, FirstAnswer: true, FreshRows: 1000, Alpha: .01, MinNLLGain: .001,
		MaxECERise: .005, MaxAccuracyDrop: .005}
}

// TestRefusedAnswers: while the classes come in runs in which a temperature would lose, nothing is fitted but what the
// trackers need, whatever the length of the panes and however long the evidence lasts.
func TestRefusedAnswers(t *testing.T) {
	t.Parallel()
	const kept, rows = 8192, 2000
	for _, k := range []int{10, 300} {
		all := inRuns(1, kept+rows, k, 250)
		for _, pane := range []int{20, 100, 200} {
			x := newFixture(t, defaults(), k)
			x.key.Sample = slices.Clone(all[:kept])
			convinced := 0
			for i := kept; i < kept+rows; i += pane {
				in := &stage.Pane{Rows: all[i : i+pane], End: all[i+pane-1].TS + 1, Labelled: int64(pane)}
				x.key.Keep(slices.Clone(in.Rows), kept)
				published, err := stepQuick(x.State, in)
				x.must(err)
				if published {
					t.Fatalf("K = %d, panes of %d: published at row %d", k, pane, i)
				}
				convinced += len(x.quick.convinced(nil, x.stage.cfg.Alpha))
			}
			if least := rows / pane; convinced < least {
				t.Errorf("K = %d, panes of %d: %d temperatures had evidence, want %d", k, pane, convinced, least)
			}
			// Each tracker is fitted when a tenth of its rows has come, at most once after each part of a pane.
			most := 0
			for _, n := range trackedRows {
				most += rows/max(n/10, partOf(pane, pane)) + 1
			}
			if got := x.quick.fits.number; got > most {
				t.Errorf("K = %d, panes of %d: %d fits, want at most %d", k, pane, got, most)
			}
		}
	}
}

// TestFitsOfRowsThatAreAllRight: where the model makes no mistake, one is fitted as well, so that the next is not
// served as impossible; where it makes one, the rows alone are fitted.
func TestFitsOfRowsThatAreAllRight(t *testing.T) {
	t.Parallel()
	const n, k = 300, 3
	rows := make([]acc.SampleRow, n)
	for i := range rows {
		rows[i] = acc.SampleRow{ID: [16]byte{byte(i), byte(i >> 8)}, TS: int64(i), W: 2, Y: int32(i % k),
			Z: make([]float32, k)}
		rows[i].Z[i%k] = 3 + float32(i%7)/10
	}
	served := func(method string) float64 {
		z, y, w := fitOn(rows, k)
		cal, _, err := calibrator.Fit(method, calibrator.NewData(z, k, y, w), calibrator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, z64 := make([]float64, k), []float64{3.3, 0, 0}
		cal.Apply(p, z64)
		return p[0]
	}
	for _, method := range []string{"temperature", "beta", "isotonic", "vector"} {
		if p := served(method); !(p > .97 && p < .9999) {
			t.Errorf("%s: of %d rows that are all right it makes %v", method, n, p)
		}
	}
	if z, y, w := fitOn(rows, k); len(z) != (n+1)*k || len(y) != n+1 || len(w) != n+1 || w[n] != 2 ||
		z[n*k+int(y[n])] != 0 {
		t.Errorf("%d labels, the last %d of %v with weight %v", len(y), y[n], z[n*k:], w[n])
	}
	rows[7].Y = (rows[7].Y + 1) % k
	if _, y, _ := fitOn(rows, k); len(y) != n {
		t.Errorf("with a mistake there are %d rows", len(y))
	}
}

// TestRollbackIsLearntFrom: the rows that show that a calibrator is wrong are what the next first answer is of.
func TestRollbackIsLearntFrom(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	wrong := inForceAs(t, 1, .5, reasonPeriod)
	x.version.Calibrators, x.revision = []*stage.InForce{wrong}, 1
	x.monitor = x.monitor.next(nil, wrong, 1)
	x.quick = newQuick(x.publisher)
	x.quick.base = 1
	x.quick.turn(keptTurns) // so that first answers wait
	x.account.lost = -1000  // and the account
	rows := sample(batchtest.Rows(41, batchtest.Options{N: 3000, Sharpness: 1}))
	for i := 0; i < len(rows); i += quickPane {
		pane := rows[i : i+quickPane]
		for j := range pane {
			pane[j].TS = batchtest.Start + int64(i+j)*second
		}
		x.key.Keep(slices.Clone(pane), sampleRows)
		fits := x.quick.fits.number
		x.must(recalibrate(x.State, &stage.Pane{End: pane[quickPane-1].TS + 1, Rows: pane, Labelled: quickPane}))
		c := x.published(pipeline.StreamCalibrators)
		if len(c) == 0 {
			continue
		}
		if c[0].Reason != reasonRollback {
			t.Fatalf("%s", c[0].Outcome)
		}
		if x.quick.fits.number == fits {
			t.Errorf("after %d rows: the trackers have not learnt from the pane of: %s", i+quickPane, c[0].Outcome)
		}
		return
	}
	t.Error("no rollback")
}

// TestFirstAnswerIsProposed: by itself it publishes nothing, though a run is under way: what its answer ends is for
// others to say.
func TestFirstAnswerIsProposed(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	q := newQuick(x.publisher)
	rows := sample(batchtest.Rows(201, batchtest.Options{N: 500, Sharpness: 3}))
	var a *quickAnswer
	for i := 0; a == nil; i += quickPane {
		if i == len(rows) {
			t.Fatalf("no answer to %d rows", i)
		}
		x.key.Labelled += quickPane
		x.key.Keep(slices.Clone(rows[i:i+quickPane]), sampleRows)
		var err error
		a, err = q.step(rows[i:i+quickPane], int64(i)*second)
		x.must(err)
	}
	if len(x.outputs) > 0 || x.version.Newest() != nil || !(q.evidence() > 0) {
		t.Errorf("%d outputs, %+v in force, evidence %v", len(x.outputs), x.version.Newest(), q.evidence())
	}
	x.must(q.publish(a, 5))
	if f := x.version.Newest(); f == nil || f.From != 5 || f.Cal != a.cal || !math.IsInf(q.evidence(), -1) {
		t.Errorf("published %+v, evidence %v", f, q.evidence())
	}
}
