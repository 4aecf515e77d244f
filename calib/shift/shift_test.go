package shift

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// world draws rows of k classes on a line: class j at 1.3·j, seen through noise; the model knows the prior.
type world struct {
	prior []float64
	bands int
}

const gap = 1.3

// row draws a row under shares q: its label, symbol and posterior under the prior.
func (w world) row(rng *rand.Rand, q []float64, sd float64) (y, symbol int, p []float64) {
	u := rng.Float64()
	for ; y < len(q)-1 && u >= q[y]; y++ {
		u -= q[y]
	}
	x := rng.NormFloat64()*sd + gap*float64(y)
	p = make([]float64, len(q))
	var sum float64
	for j := range p {
		d := x - gap*float64(j)
		p[j] = w.prior[j] * math.Exp(-d*d/2)
		sum += p[j]
	}
	top := 0
	for j := range p {
		p[j] /= sum
		if p[j] > p[top] {
			top = j
		}
	}
	return y, top*w.bands + min(w.bands-1, int(float64(w.bands)*p[top])), p
}

// tables draws n reference rows under the prior and m rows now under q.
func (w world) tables(rng *rand.Rand, q []float64, n, m int, sd float64) (t Table, truth float64, now []float64) {
	k := len(q)
	t.K = k
	for i := range k * w.bands {
		t.Says = append(t.Says, i/w.bands)
	}
	t.Joint, t.Now = make([]float64, k*len(t.Says)), make([]float64, len(t.Says))
	for range n {
		y, s, _ := w.row(rng, w.prior, 1)
		t.Joint[s*k+y]++
	}
	for range m {
		y, s, p := w.row(rng, q, sd)
		t.Now[s]++
		now = append(now, p...)
		if s/w.bands == y {
			truth += 1 / float64(m)
		}
	}
	return t, truth, now
}

// TestSquareIsBlackBox: with a symbol a class, w is C⁻¹μ, by Gaussian elimination in another package, and nothing can
// be tested.
func TestSquareIsBlackBox(t *testing.T) {
	w := world{[]float64{.5, .3, .2}, 1}
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		table, _, _ := w.tables(rng, []float64{.3, .3, .4}, 3000, 2000, 1)
		want, err := plainLabelShift(table.Joint, table.Now)
		if err != nil {
			t.Fatal(err)
		}
		got, err := BBSE(table)
		if err != nil {
			t.Fatal(err)
		}
		// The two differ by rounding in a system of condition 10.
		const rounding = 1e-9
		for j := range want.Weights {
			if math.Abs(got.Weights[j]-want.Weights[j]) > rounding {
				t.Errorf("seed %d, class %d: weight %v, want %v", seed, j, got.Weights[j], want.Weights[j])
			}
		}
		if math.Abs(got.Accuracy-want.Accuracy) > rounding ||
			math.Abs((got.Hi-got.Lo)-(want.Hi-want.Lo)) > .1*(want.Hi-want.Lo) || got.Fit.P != 1 || got.Fit.DF != 0 {
			t.Errorf("seed %d: accuracy %v, want %v; fit %+v", seed, got.Accuracy, want.Accuracy, got.Fit)
		}
	}
}

// plainEM is Saerens' iteration, each row on its own.
func plainEM(p [][]float64, prior []float64) []float64 {
	q := append([]float64(nil), prior...)
	for range 3000 {
		next := make([]float64, len(q))
		for _, row := range p {
			var sum float64
			for j := range row {
				sum += row[j] * q[j] / prior[j]
			}
			for j := range row {
				next[j] += row[j] * q[j] / prior[j] / sum / float64(len(p))
			}
		}
		q = next
	}
	return q
}

// TestEMIsMaximum: at the maximum the likelihood rises towards no class, and is level in those that have a share. A
// hundred classes that say little of their rows are where EM's steps are smallest.
func TestEMIsMaximum(t *testing.T) {
	const k, reference, now = 100, 8192, 60_000
	for _, random := range []float64{.3, .8} { // share of rows that say any class
		rng := rand.New(rand.NewPCG(3, uint64(100*random)))
		table := Table{K: k, Says: make([]int, k), Joint: make([]float64, k*k), Now: make([]float64, k)}
		for j := range k {
			table.Says[j] = j
		}
		for row := range reference + now {
			j := rng.IntN(k)
			if row >= reference {
				j = int(k * rng.Float64() * rng.Float64())
			}
			i := j
			if rng.Float64() < random {
				i = rng.IntN(k)
			}
			if row < reference {
				table.Joint[i*k+j]++
			} else {
				table.Now[i]++
			}
		}
		got, err := EM(table)
		if err != nil {
			t.Fatal(err)
		}
		d, err := newModel(&table)
		if err != nil {
			t.Fatal(err)
		}
		next := make([]float64, k)
		if _, err := d.step(next, got.Shares, make([]float64, len(d.mu))); err != nil {
			t.Fatal(err)
		}
		for j, q := range got.Shares {
			if slope := next[j] / q; slope > 1.001 || q > 1e-3 && slope < .999 {
				t.Errorf("random %v, class %d, share %v: the likelihood has the slope %v, want 1", random, j, q, slope)
			}
		}
	}
}

// TestEMIsPlain: EM on a table is the plain iteration over rows that have the posteriors of their symbols, and so is
// EMRows.
func TestEMIsPlain(t *testing.T) {
	w := world{[]float64{.5, .3, .2}, 2}
	rng := rand.New(rand.NewPCG(2, 2))
	table, _, _ := w.tables(rng, []float64{.2, .3, .5}, 4000, 500, 1)
	prior := make([]float64, 3)
	for i, x := range table.Joint {
		prior[i%3] += x / 4000
	}
	var rows [][]float64
	var flat []float64
	for _, g := range groups(&table) {
		var n, now float64
		p := make([]float64, 3)
		for _, i := range g {
			now += table.Now[i]
			for j := range p {
				p[j] += table.Joint[i*3+j]
				n += table.Joint[i*3+j]
			}
		}
		for j := range p {
			p[j] /= n
		}
		for range int(now) {
			rows, flat = append(rows, p), append(flat, p...)
		}
	}
	want := plainEM(rows, prior)
	byTable, err := EM(table)
	if err != nil {
		t.Fatal(err)
	}
	byRows, err := EMRows(flat, prior)
	if err != nil {
		t.Fatal(err)
	}
	const ended = 1e-4 // EM stops where its steps are below 1e-7, and goes slowly there
	for j := range want {
		if math.Abs(byTable.Shares[j]-want[j]) > ended || math.Abs(byRows.Shares[j]-want[j]) > ended {
			t.Errorf("class %d: by table %v, by rows %v, want %v", j, byTable.Shares[j], byRows.Shares[j], want[j])
		}
	}
	// Of the same likelihood: the noise of the reference apart, which is of 4,000 rows to 500, both say the same of
	// the error.
	table.Soft = true
	soft, err := EM(table)
	if err != nil {
		t.Fatal(err)
	}
	for j := range want {
		if r := soft.SE[j] / byRows.SE[j]; r < .9 || r > 1.2 { // expected and observed information
			t.Errorf("class %d: standard error %v by table, %v by rows", j, soft.SE[j], byRows.SE[j])
		}
	}
}

// TestErrorsAreRight draws reference and window many times: estimates are unbiased, intervals hold the truth in about
// 95 %, standard errors are the deviations, the test of the assumption rejects as often as it says, and under a shift
// of inputs far more often.
func TestErrorsAreRight(t *testing.T) {
	testsize.Slow(t)
	w := world{[]float64{.4, .3, .2, .1}, 4}
	q := []float64{.15, .2, .25, .4}
	const trials = 250
	for _, method := range []func(Table) (Estimate, error){BBSE, EM} {
		rng := rand.New(rand.NewPCG(3, 3))
		var held, rejected, broken int
		var off, df, statistic float64
		sum, square, se := make([]float64, 4), make([]float64, 4), make([]float64, 4)
		var name string
		for range trials {
			table, truth, _ := w.tables(rng, q, 3000, 1500, 1)
			e, err := method(table)
			if err != nil {
				t.Fatal(err)
			}
			name = e.Method
			if e.Lo <= truth && truth <= e.Hi {
				held++
			}
			if e.Fit.P < .05 {
				rejected++
			}
			off += (e.Accuracy - truth) / trials
			df, statistic = df+e.Fit.DF/trials, statistic+e.Fit.Statistic/trials
			for j := range q {
				d := e.Shares[j] - e.Reference[j] - (q[j] - w.prior[j])
				sum[j] += d / trials
				square[j] += d * d / trials
				se[j] += e.SE[j] / trials
			}
			other, _, _ := w.tables(rng, q, 3000, 1500, 2)
			if e, err = method(other); err != nil {
				t.Fatal(err)
			}
			if e.Fit.P < .05 {
				broken++
			}
		}
		t.Logf("%s: %d of %d intervals hold, %d rejected at 5 %%, %d of noisier inputs; accuracy off by %.4f; mean "+
			"of the statistic %.2f of %.2f degrees", name, held, trials, rejected, broken, off, statistic, df)
		// Four binomial standard errors at 250 trials are 5.5 points.
		if held < trials*89/100 || held == trials {
			t.Errorf("%s: %d of %d intervals hold the accuracy", name, held, trials)
		}
		if rejected > trials*10/100 || rejected < trials/100 {
			t.Errorf("%s: the assumption is rejected %d times of %d where it is true, want about 5 %%", name, rejected,
				trials)
		}
		if broken < trials*90/100 {
			t.Errorf("%s: the assumption is rejected %d times of %d where inputs have more noise", name, broken, trials)
		}
		if math.Abs(off) > .004 {
			t.Errorf("%s: accuracy off by %v", name, off)
		}
		for j := range q {
			sd := math.Sqrt(square[j])
			if r := se[j] / sd; r < .82 || r > 1.18 { // the error of a deviation of 250 draws is 4.5 %
				t.Errorf("%s, class %d: standard error %v, deviation %v", name, j, se[j], sd)
			}
			if math.Abs(sum[j]) > 4*sd/math.Sqrt(trials)+.003 { // and a bias of order 1/n
				t.Errorf("%s, class %d: off by %v on average", name, j, sum[j])
			}
		}
	}
}

// TestNearSingular: of two classes that the model cannot tell apart the shares are drawn towards those of the
// reference, and that is said; the others are found.
func TestNearSingular(t *testing.T) {
	joint := []float64{ // symbols by label: 1 and 2 look alike
		300, 10, 10,
		5, 150, 150,
		5, 140, 140,
	}
	e, err := BBSE(Table{K: 3, Says: []int{0, 1, 2}, Joint: joint, Now: []float64{200, 410, 390}})
	if err != nil {
		t.Fatal(err)
	}
	if e.Condition <= MaxCondition || e.Ridge <= 0 {
		t.Errorf("condition %v, ridge %v", e.Condition, e.Ridge)
	}
	if math.Abs(e.Shares[1]-e.Shares[2]) > .01 {
		t.Errorf("shares %v: nothing tells classes 1 and 2 apart", e.Shares)
	}
	if want := (.2 - 10./300) / (300./310 - 10./300); math.Abs(e.Shares[0]-want) > .01 {
		t.Errorf("share of class 0 is %v, want about %v", e.Shares[0], want)
	}
}

// TestClassesThatAreMissing in the reference have a weight of 1 and a share of 0; rows that say them are no fit.
func TestClassesThatAreMissing(t *testing.T) {
	table := Table{K: 4, Says: []int{0, 0, 1, 1, 2, 3}, Joint: make([]float64, 24),
		Now: []float64{100, 100, 80, 120, 0, 300}}
	for i, x := range [][2]float64{{90, 30}, {110, 20}, {10, 100}, {20, 120}} {
		table.Joint[i*4], table.Joint[i*4+1] = x[0], x[1]
	}
	for _, method := range []func(Table) (Estimate, error){BBSE, EM} {
		e, err := method(table)
		if err != nil {
			t.Fatal(err)
		}
		if e.Unknown != 2 || e.Weights[3] != 1 || e.Shares[3] != 0 || e.Shares[2] != 0 {
			t.Errorf("%+v: want classes 2 and 3 unknown", e)
		}
		if e.Fit.P > 1e-6 {
			t.Errorf("%s: rows that say a class the reference lacks fit with p = %v", e.Method, e.Fit.P)
		}
	}
}

// TestByLabelECE: the calibration error under other shares is that of the rows with their weights.
func TestByLabelECE(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const k, m, n = 3, 5, 2000
	b := ByLabel{Rows: make([]float64, k), Gap: make([]float64, k*m)}
	type row struct {
		y, bin int
		d      float64
	}
	var rows []row
	for range n {
		r := row{rng.IntN(k), rng.IntN(m), rng.Float64() - .4}
		rows = append(rows, r)
		b.Rows[r.y]++
		b.Gap[r.y*m+r.bin] += r.d
	}
	q := []float64{.7, .2, .1}
	var want, sum float64
	for bin := range m {
		var g float64
		for _, r := range rows {
			if r.bin == bin {
				g += q[r.y] / b.Rows[r.y] * n * r.d
			}
		}
		want += math.Abs(g)
	}
	for _, r := range rows {
		sum += q[r.y] / b.Rows[r.y] * n
	}
	got, covered, err := b.ECE(q)
	if err != nil || math.Abs(got-want/sum) > 1e-12 || math.Abs(covered-1) > 1e-12 {
		t.Errorf("ECE %v, covered %v, %v, want %v", got, covered, err, want/sum)
	}
	b.Rows[2] = 0
	if _, covered, _ = b.ECE(q); math.Abs(covered-.9) > 1e-12 {
		t.Errorf("covered %v, want .9", covered)
	}
	if _, _, err := b.ECE(q[1:]); !errors.Is(err, ErrInput) {
		t.Errorf("shape: %v", err)
	}
}

func TestRefused(t *testing.T) {
	ok := func() Table {
		return Table{K: 2, Says: []int{0, 1}, Joint: []float64{40, 10, 10, 40}, Now: []float64{50, 50}}
	}
	for name, change := range map[string]func(*Table){
		"one class": func(t *Table) { t.K = 1 }, "many classes": func(t *Table) { t.K = MaxClasses + 1 },
		"shape":  func(t *Table) { t.Joint = t.Joint[1:] },
		"symbol": func(t *Table) { t.Says[0] = 2 }, "negative": func(t *Table) { t.Now[0] = -1 },
		"NaN":                 func(t *Table) { t.Joint[0] = math.NaN() },
		"few":                 func(t *Table) { t.Now[0], t.Now[1] = 1, 2 },
		"one class with rows": func(t *Table) { t.Joint = []float64{50, 0, 50, 0} },
	} {
		table := ok()
		change(&table)
		for _, method := range []func(Table) (Estimate, error){BBSE, EM} {
			if _, err := method(table); !errors.Is(err, ErrInput) {
				t.Errorf("%s: error %v, want ErrInput", name, err)
			}
		}
	}
	if _, err := EMRows([]float64{.5, .6}, []float64{.5, .5}); !errors.Is(err, ErrInput) {
		t.Errorf("no distribution: %v", err)
	}
}

// FuzzTable: no table panics, and every estimate is one: shares of a distribution, an accuracy in its interval.
func FuzzTable(f *testing.F) {
	f.Add(uint64(1), []byte{10, 200, 3, 0, 0, 90, 40, 5, 200, 255, 1, 7})
	f.Add(uint64(2), []byte{0, 0, 0, 0, 255})
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		if len(b) == 0 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		k, s := 2+rng.IntN(6), 1+rng.IntN(12)
		table := Table{K: k, Soft: seed%2 == 0, Joint: make([]float64, s*k), Now: make([]float64, s)}
		at := 0
		next := func() float64 {
			at++
			return float64(b[at%len(b)]) * float64(1+rng.IntN(3))
		}
		for i := range s {
			table.Says = append(table.Says, rng.IntN(k))
			table.Now[i] = next()
			for j := range k {
				table.Joint[i*k+j] = next()
			}
		}
		for _, method := range []func(Table) (Estimate, error){BBSE, EM} {
			e, err := method(table)
			if err != nil {
				if !errors.Is(err, ErrInput) {
					t.Fatal(err)
				}
				continue
			}
			var sum float64
			for j, q := range e.Shares {
				if !(q >= 0 && q <= 1+1e-9) || !(e.SE[j] >= 0) || math.IsInf(e.SE[j], 0) || !(e.Weights[j] >= 0) {
					t.Fatalf("class %d of %+v", j, e)
				}
				sum += q
			}
			if math.Abs(sum-1) > 1e-6 || !(e.Lo <= e.Accuracy && e.Accuracy <= e.Hi) ||
				!(e.Fit.P >= 0 && e.Fit.P <= 1) {
				t.Fatalf("%+v", e)
			}
		}
	})
}
