package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// toyScores are logits of n rows: label y, and about as much for it as against it.
func toyScores(n int, seed uint64) *scores {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &scores{z: map[string][]float32{}, t: 1.7}
	var z []float32
	for range n {
		y := rng.IntN(classes)
		s.labels = append(s.labels, int32(y))
		for k := range classes {
			x := 2 * rng.NormFloat64()
			if k == y {
				x += 3
			}
			z = append(z, float32(x))
		}
	}
	s.z["toy"] = z
	return s
}

// slowSoftmax is softmax(z/t) as it is written.
func slowSoftmax(z []float32, t float64) []float64 {
	p := make([]float64, len(z))
	var sum float64
	for k, v := range z {
		p[k] = math.Exp(float64(v) / t)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// TestClassRows: the rows of one parity, their probabilities, prediction and whether it is right, against softmax row
// by row.
func TestClassRows(t *testing.T) {
	const n, tolerance = 501, 1e-6 // logits are subtracted in float32, off by up to 1e-6 each
	s := toyScores(n, 1)
	for _, parity := range []int{evens, odds} {
		got := s.rowsOfClass("toy", parity)
		at := 0
		for i := range n {
			if i%2 != parity {
				continue
			}
			p := slowSoftmax(s.z["toy"][i*classes:(i+1)*classes], s.t)
			top := 0
			for k := range p {
				if p[k] > p[top] {
					top = k
				}
				if math.Abs(got.p[at*classes+k]-p[k]) > tolerance {
					t.Fatalf("row %d, class %d: probability %v, want %v", i, k, got.p[at*classes+k], p[k])
				}
			}
			if got.top[at] != top || got.y[at] != int(s.labels[i]) || math.Abs(got.c[at]-p[top]) > tolerance ||
				got.right[at] != (top == int(s.labels[i])) {
				t.Fatalf("row %d: prediction %d, label %d, confidence %v, right %v; want %d, %d, %v", i, got.top[at],
					got.y[at], got.c[at],
					got.right[at], top, s.labels[i], p[top])
			}
			at++
		}
		if len(got.y) != at {
			t.Errorf("parity %d: %d rows, want %d", parity, len(got.y), at)
		}
	}
}

// TestSkewed: class k comes 4·2^(-k/1.5) times, 0.5 to 4 times on average, and each row with all that belongs to it.
func TestSkewed(t *testing.T) {
	r := toyScores(20_000, 2).rowsOfClass("toy", evens)
	got := r.skewed()
	before, after := make([]float64, classes), make([]float64, classes)
	for _, y := range r.y {
		before[y]++
	}
	for i, y := range got.y {
		after[y]++
		p := got.p[i*classes : (i+1)*classes]
		if math.Abs(p[got.top[i]]-got.c[i]) > 1e-12 || got.right[i] != (got.top[i] == y) {
			t.Fatalf("row %d: confidence %v of class %d, probabilities %v, label %d, right %v", i, got.c[i], got.top[i],
				p, y, got.right[i])
		}
	}
	if len(got.p) != len(got.y)*classes || len(got.c) != len(got.y) {
		t.Fatalf("%d probabilities, %d confidences, %d labels", len(got.p), len(got.c), len(got.y))
	}
	for y := range classes {
		// Whole copies are certain, one more is drawn: Σ over x, x-1, … of min(1, ·).
		var want float64
		for x := 4 * math.Exp2(-float64(y)/1.5); x > 0; x-- {
			want += math.Min(1, x)
		}
		if got := after[y] / before[y]; math.Abs(got-want) > .08 { // five standard errors of 1,000 draws
			t.Errorf("class %d: %v times as often, want %v", y, got, want)
		}
	}
}

// solve returns x of a·x = b by Gaussian elimination with row exchanges.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for c := range n {
		top := c
		for r := c; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[top][c]) {
				top = r
			}
		}
		a[c], a[top], b[c], b[top] = a[top], a[c], b[top], b[c]
		for r := c + 1; r < n; r++ {
			f := a[r][c] / a[c][c]
			for k := c; k < n; k++ {
				a[r][k] -= f * a[c][k]
			}
			b[r] -= f * b[c]
		}
	}
	x := make([]float64, n)
	for c := n - 1; c >= 0; c-- {
		x[c] = b[c]
		for k := c + 1; k < n; k++ {
			x[c] -= a[c][k] * x[k]
		}
		x[c] /= a[c][c]
	}
	return x
}

// slowEstimates are the accuracies that the three methods estimate, and Z, by their definitions.
func slowEstimates(ref, now classRows, q func(float64) float64) (confidence, z, bbse, em float64) {
	n, m := float64(len(ref.y)), float64(len(now.y))
	var variance, first float64
	for i, c := range now.c {
		confidence += q(c) / m
		variance += q(c) * (1 - q(c)) / (m * m)
		if i < 500 && now.right[i] {
			first++
		}
	}
	smooth := (first + 1) / 502
	z = (confidence - first/500) / math.Sqrt(smooth*(1-smooth)*(1./500-1/float64(len(now.y)))+variance)

	joint, mu, prior := make([][]float64, classes), make([]float64, classes), make([]float64, classes)
	diagonal := make([]float64, classes)
	for i := range joint {
		joint[i] = make([]float64, classes)
	}
	for i, y := range ref.y {
		joint[ref.top[i]][y] += 1 / n
		prior[y] += 1 / n
	}
	for i := range joint {
		diagonal[i] = joint[i][i]
	}
	for _, top := range now.top {
		mu[top] += 1 / m
	}
	w := solve(joint, mu)
	var sum float64
	for j := range w {
		w[j] = math.Max(0, w[j])
		sum += w[j] * prior[j]
	}
	for j := range w {
		bbse += diagonal[j] * w[j] / sum
	}

	shares := append([]float64(nil), prior...)
	posterior := func(i int) []float64 {
		p := make([]float64, classes)
		var sum float64
		for j := range p {
			p[j] = now.p[i*classes+j] * shares[j] / prior[j]
			sum += p[j]
		}
		for j := range p {
			p[j] /= sum
		}
		return p
	}
	for range 400 {
		next := make([]float64, classes)
		for i := range now.y {
			for j, x := range posterior(i) {
				next[j] += x / m
			}
		}
		shares = next
	}
	for i := range now.y {
		em += posterior(i)[now.top[i]] / m
	}
	return confidence, z, bbse, em
}

// TestEstimate: what the table prints is what the definitions give row by row.
func TestEstimate(t *testing.T) {
	s := toyScores(4000, 3)
	square := func(c float64) float64 { return c * c }
	ref, now := s.rowsOfClass("toy", evens), s.rowsOfClass("toy", odds)
	for name, now := range map[string]classRows{"as they are": now, "other label shares": now.skewed()} {
		got, err := estimate(ref, now, square)
		if err != nil {
			t.Fatal(err)
		}
		confidence, z, bbse, em := slowEstimates(ref, now, square)
		var right float64
		for _, r := range now.right {
			if r {
				right++
			}
		}
		if want := right / float64(len(now.right)); got.truth != want {
			t.Errorf("%s: true accuracy %v, want %v", name, got.truth, want)
		}
		const cell = 1. / 3600 // confidences are taken at the mean of their cell
		if math.Abs(got.confidence-confidence) > cell {
			t.Errorf("%s: confidence-based %v, row by row %v", name, got.confidence, confidence)
		}
		for k, want := range []float64{confidence * 100, z, bbse * 100, em * 100} {
			if printed := leading(t, got.texts[k]); math.Abs(printed-want) > .06 { // printed with one digit
				t.Errorf("%s: %q in column %d, want %.3f", name, got.texts[k], k, want)
			}
		}
	}
}

// leading is the number that a cell begins with.
func leading(t *testing.T, cell string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(strings.Fields(cell)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestEstimateRows: every corruption has a row, with CBPE's estimate where there is one, and a table of as many columns
// as its head.
func TestEstimateRows(t *testing.T) {
	s := toyScores(3000, 4)
	for _, name := range append([]string{"resnet20"}, corruptions...) {
		if name != "resnet20" {
			name = "resnet20_" + name
		}
		s.z[name] = s.z["toy"]
	}
	dir := t.TempDir()
	if err := writeJSON(filepath.Join(dir, "cbpe.json"), map[string]float64{"resnet20_contrast_s3": .625}); err != nil {
		t.Fatal(err)
	}
	rows, err := estimateRows(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(corruptions)+2 {
		t.Fatalf("%d rows, want %d", len(rows), len(corruptions)+2)
	}
	for _, r := range rows {
		if has := !math.IsNaN(r.cbpe); has != (r.title == "contrast_s3") || has && r.cbpe != .625 {
			t.Errorf("%s: CBPE %v", r.title, r.cbpe)
		}
	}
	var b strings.Builder
	estimateTable(&b, rows)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[2:]
	if len(lines) != len(rows)+2 {
		t.Errorf("%d lines of a table, want %d", len(lines), len(rows)+2)
	}
	for _, l := range lines[2:] {
		if got, want := strings.Count(l, "|"), strings.Count(lines[0], "|"); got != want {
			t.Errorf("%d columns, want %d: %s", got, want, l)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cbpe.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := estimateRows(s, dir); err == nil || !strings.Contains(err.Error(), "cbpe.json") {
		t.Errorf("a broken cbpe.json: %v", err)
	}
}

// TestFrozen: real streams are read as they were written, and refused where the files do not fit the list.
func TestFrozen(t *testing.T) {
	dir := t.TempDir()
	if got, err := frozen(dir); got != nil || err != nil {
		t.Fatalf("no files: %v, %v", got, err)
	}
	s := toy(0)
	e, err := export(dir, &s, 1)
	if err != nil {
		t.Fatal(err)
	}
	write := func(rows int) {
		e.Rows = rows
		b, err := json.Marshal([]exported{e})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "frozen.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(s.n)
	got, err := frozen(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := s.rows(0, nil)
	for i, r := range got[0].rows(7, nil) {
		if r != want[i] {
			t.Fatalf("row %d is %v, want %v", i, r, want[i])
		}
	}
	write(s.n + 1)
	if _, err := frozen(dir); err == nil || !strings.Contains(err.Error(), "2001") {
		t.Errorf("a list of one row too many: %v", err)
	}
}
