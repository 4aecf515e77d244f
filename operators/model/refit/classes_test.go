package refit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// inRunsOf returns n rows of k classes that come in runs of that length.
func inRunsOf(n, k, run int) []acc.SampleRow {
	r := rand.New(rand.NewPCG(uint64(run), 41))
	rows, y := make([]acc.SampleRow, n), 0
	var next []int
	for i := range rows {
		if i%run == 0 {
			if len(next) == 0 {
				next = r.Perm(k)
			}
			y, next = next[0], next[1:]
		}
		rows[i] = acc.SampleRow{TS: int64(i), Y: int32(y), Z: make([]float32, k), W: 1}
	}
	return rows
}

func TestNewestOfClasses(t *testing.T) {
	t.Parallel()
	k := &stage.Key{K: 4, Sample: inRunsOf(4000, 4, 500)}
	total, got := make([]int, 4), make([]int, 4)
	for i := range k.Sample {
		total[k.Sample[i].Y]++
	}
	rows := rowsAt(k, newestOfClasses(k, 400))
	for i := range rows {
		got[rows[i].Y]++
		if i > 0 && rows[i].TS <= rows[i-1].TS {
			t.Fatal("the rows are not in the order of the sample")
		}
	}
	for y := range got {
		if want := float64(total[y]) / 10; math.Abs(float64(got[y])-want) > 1 {
			t.Errorf("%d rows of class %d, want %v", got[y], y, want)
		}
	}
	if last := rows[len(rows)-1]; last.TS != 3999 {
		t.Errorf("the newest row is %d, want that of the sample", last.TS)
	}
	mixed := &stage.Key{K: 4, Sample: inRunsOf(4000, 4, 1)}
	if rows := rowsAt(mixed, newestOfClasses(mixed, 400)); rows[0].TS < 3400 {
		t.Errorf("of classes in no order the oldest row is %d, want one of about the latest 400", rows[0].TS)
	}
}

// TestNewestOfManyClasses: with a row or two a class, the rows are the latest ones all the same.
func TestNewestOfManyClasses(t *testing.T) {
	t.Parallel()
	k := &stage.Key{K: 1000, Sample: inRunsOf(4000, 1000, 1)}
	if rows := rowsAt(k, newestOfClasses(k, 300)); len(rows) > 320 || rows[0].TS < 3400 {
		t.Errorf("%d rows from %d on, want about the latest 300", len(rows), rows[0].TS)
	}
}

// TestMeansOfClasses: gains of classes differ where rows show it; those of a row or two are that of all rows.
func TestMeansOfClasses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	few, many := newClassGains(1000), newClassGains(3)
	for range 1500 {
		few.add(int32(r.IntN(999)), .1+r.NormFloat64())
	}
	for i := range 3000 {
		many.add(int32(i%2), float64(i%2)+r.NormFloat64()/10)
	}
	got := few.means()
	if d := slices.Max(got) - slices.Min(got); d > .3 {
		t.Errorf("the gains of 999 equal classes differ by %v", d)
	}
	if all := got[999]; math.Abs(all-.1) > .1 {
		t.Errorf("a class without rows gains %v, want about .1", all)
	}
	if got := many.means(); math.Abs(got[0]) > .02 || math.Abs(got[1]-1) > .02 || math.Abs(got[2]-.5) > .02 {
		t.Errorf("means %v, want about 0, 1 and, of no rows, .5", got)
	}
	for _, none := range newClassGains(4).means() {
		if none != 0 {
			t.Errorf("without rows a class gains %v", none)
		}
	}
}

// TestGainsOfRuns: three classes gain and one loses as much as two of them gain. That is a gain where classes come in
// no order, and none to rely on where the next thousand rows may be of that class.
func TestGainsOfRuns(t *testing.T) {
	t.Parallel()
	gains := []float64{.1, .1, .1, -.2}
	for run, safe := range map[int]bool{1: true, 5: true, 250: false, 1000: false} {
		if got := worstRuns(inRunsOf(sampleRows, 4, run), gains, 1000); (got >= 0) != safe {
			t.Errorf("runs of %d rows: at least %v, want safe: %v", run, got, safe)
		}
	}
	for _, run := range []int{1, 250, 2000} {
		if got := worstRuns(inRunsOf(sampleRows, 4, run), slices.Repeat([]float64{.1}, 4), 1000); got < .1-1e-9 {
			t.Errorf("all classes gain .1, in runs of %d rows: at least %v", run, got)
		}
	}
}

// TestFirstAnswerIsRefined: the temperature of the first hundreds of rows is fitted anew when there are twice as many.
func TestFirstAnswerIsRefined(t *testing.T) {
	t.Parallel()
	x := newFixture(t, testConfig(), 4)
	x.stepQuickly(201, 300, 3)
	if x.version.Newest() == nil {
		t.Fatal("no first answer")
	}
	rough, err := calibrator.NewTemperature(2.2) // what too few rows may give
	x.must(err)
	encoded, err := calibrator.Encode(rough)
	x.must(err)
	x.version.Newest().Cal, x.version.Newest().Encoded = rough, encoded
	x.quick.restart()
	for i := range x.quick.trackers { // no evidence: only more rows
		x.quick.trackers[i] = tracker{number: i, due: math.MaxInt}
	}
	after := x.stepQuickly(202, 3000, 3)
	if after == 0 || after > 1500 {
		t.Fatalf("fitted anew after %d rows more", after)
	}
	if got := x.version.Newest().Cal.(interface{ T() float64 }).T(); math.Abs(got-3) > .3 {
		t.Errorf("temperature %v, want about 3", got)
	}
}
