package shift

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput is for tables of wrong shape, counts that are none, or too few of them.
var ErrInput = errors.New("invalid input")

// Assumption is what all estimates of this package rest on, in words for people.
const Assumption = "P(input | class) is as in the labelled reference: only the shares of the classes have moved"

// MaxClasses bounds K: the estimates solve dense K×K systems.
const MaxClasses = 128

// fewest is the least number of rows of a sample.
const fewest = 30

// Table is what is counted of rows by symbol: of the labelled reference by label, and of the unlabelled rows now.
type Table struct {
	K     int
	Says  []int     // S: the class that rows of a symbol say
	Joint []float64 // S×K, row-major: rows of the reference by symbol and label
	Now   []float64 // S: rows now
	// Soft says that Joint are not counts but sums of calibrated probabilities P(label | row) over rows of the
	// reference, which are less noisy, and as right as the calibrator is: its own errors are not in those of the
	// estimate.
	Soft bool
}

// model is a checked table in shares: only classes that the reference has, and symbols that either sample has.
type model struct {
	k       int   // of the table
	classes []int // that have rows of the reference
	says    []int // by symbol: index into classes, -1 = a class that the reference lacks
	a       []float64
	rows    []float64 // by class of the reference, n_j
	mu      []float64
	share   []float64 // of the symbols in the reference
	n, m    float64
	soft    bool
}

func (t *Table) check() (n, m float64, err error) {
	s := len(t.Now)
	if t.K < 2 || t.K > MaxClasses || len(t.Says) != s || len(t.Joint) != s*t.K {
		return 0, 0, fmt.Errorf("%d symbols of %d classes, %d of the reference with %d counts, allowed 2 to %d "+
			"classes, S symbols and S·K counts: %w",
			s, t.K, len(t.Says), len(t.Joint), MaxClasses, ErrInput)
	}
	for i, c := range t.Says {
		if c < 0 || c >= t.K {
			return 0, 0, fmt.Errorf("symbol %d says class %d, allowed 0 to %d: %w", i, c, t.K-1, ErrInput)
		}
	}
	if n, err = total("the reference", t.Joint); err != nil {
		return 0, 0, err
	}
	m, err = total("now", t.Now)
	return n, m, err
}

func total(name string, h []float64) (float64, error) {
	var n float64
	for i, x := range h {
		if !(x >= 0 && x <= math.MaxInt64) {
			return 0, fmt.Errorf("count %d of %s is %v, allowed 0 and above: %w", i, name, x, ErrInput)
		}
		n += x
	}
	if n < fewest {
		return 0, fmt.Errorf("%s has %.0f rows, allowed %d and more: %w", name, n, fewest, ErrInput)
	}
	return n, nil
}

// newModel puts symbols of one class together until each has rows enough of the reference (groups), and makes shares of
// counts.
func newModel(t *Table) (*model, error) {
	n, m, err := t.check()
	if err != nil {
		return nil, err
	}
	d := &model{k: t.K, n: n, m: m, soft: t.Soft}
	rows := make([]float64, t.K)
	for i, x := range t.Joint {
		rows[i%t.K] += x
	}
	index := make([]int, t.K)
	for j, x := range rows {
		if index[j] = -1; x >= leastOfClass {
			index[j] = len(d.classes)
			d.classes = append(d.classes, j)
			d.rows = append(d.rows, x)
		}
	}
	if len(d.classes) < 2 {
		return nil, fmt.Errorf("%d classes have rows of the reference, allowed 2 and more: %w", len(d.classes),
			ErrInput)
	}
	for _, g := range groups(t) {
		at := len(d.a)
		d.a = append(d.a, make([]float64, len(d.classes))...)
		var now, share float64
		for _, i := range g {
			now += t.Now[i] / m
			for _, x := range t.Joint[i*t.K : (i+1)*t.K] {
				share += x / n
			}
			for x, j := range d.classes {
				d.a[at+x] += t.Joint[i*t.K+j] / d.rows[x]
			}
		}
		d.mu, d.share, d.says = append(d.mu, now), append(d.share, share), append(d.says, index[t.Says[g[0]]])
	}
	return d, nil
}

const (
	// leastOfSymbol rows of the reference make a symbol of its own, of those of one class.
	leastOfSymbol = 10
	// leastOfClass is the least of a class, in rows: a class with less has no distribution of symbols that is known,
	// and is taken to have a share of 0 now.
	leastOfClass = .5
)

// groups are the symbols as they are taken together: of each class in their order, until a group has leastOfSymbol rows
// of the reference; what is left of a class goes to its last group.
func groups(t *Table) [][]int {
	var out [][]int
	var sum float64
	open := false // the last group has too little
	for i := range t.Says {
		last := len(out) - 1
		same := last >= 0 && t.Says[out[last][0]] == t.Says[i]
		if !same && open && last > 0 && t.Says[out[last-1][0]] == t.Says[out[last][0]] {
			out[last-1] = append(out[last-1], out[last]...)
			out = out[:last]
			last--
		}
		if !same || !open {
			out, sum = append(out, nil), 0
			last = len(out) - 1
		}
		out[last] = append(out[last], i)
		for _, x := range t.Joint[i*t.K : (i+1)*t.K] {
			sum += x
		}
		open = sum < leastOfSymbol
	}
	if last := len(out) - 1; open && last > 0 && t.Says[out[last-1][0]] == t.Says[out[last][0]] {
		out[last-1] = append(out[last-1], out[last]...)
		out = out[:last]
	}
	return out
}

// fitted is A q by symbol.
func (d *model) fitted(q []float64) []float64 {
	out := make([]float64, len(d.mu))
	d.times(out, q)
	return out
}

// times sets dst to A q. Four sums run beside each other, since each addition waits for the one before it; the order
// within each sum is that of the classes.
func (d *model) times(dst, q []float64) {
	c, i := len(d.classes), 0
	for ; i+4 <= len(dst); i += 4 {
		rows := d.a[i*c : (i+4)*c]
		r0, r1, r2, r3 := rows[:c], rows[c:2*c], rows[2*c:3*c], rows[3*c:]
		r1, r2, r3 = r1[:len(q)], r2[:len(q)], r3[:len(q)]
		r0 = r0[:len(q)]
		var s0, s1, s2, s3 float64
		for x, v := range q {
			s0 += r0[x] * v
			s1 += r1[x] * v
			s2 += r2[x] * v
			s3 += r3[x] * v
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = s0, s1, s2, s3
	}
	for ; i < len(dst); i++ {
		var sum float64
		for x, v := range d.a[i*c : (i+1)*c] {
			sum += v * q[x]
		}
		dst[i] = sum
	}
}

// noise is D, the variance of μ_i - (A q)_i by symbol under independent counts:
//
//	D_i = (A q)_i/m + Σ_j q_j² A_ij/n_j      counted
//	D_i = (A q)_i/m + (A q)_i²/(n s_i)       soft, s_i the share of the symbol in the reference: which rows came,
//	                                         not their labels
//
// That of shares of fixed totals is D - A B Aᵀ, B = q qᵀ/m + diag(q_j²/n_j), or q qᵀ (1/m + 1/n): the same for all that
// is orthogonal to A, so weighing by D is as good as weighing by it (Rao), and Cov q = (AᵀD⁻¹A)⁻¹ - B. D 1 is in the
// span of A, so Σ q = 1 of itself.
func (d *model) noise(q []float64) []float64 {
	c := len(d.classes)
	out := d.fitted(q)
	for i, fitted := range out {
		out[i] /= d.m
		switch {
		case !d.soft:
			for x, v := range d.a[i*c : (i+1)*c] {
				out[i] += q[x] * q[x] * v / d.rows[x]
			}
		case d.share[i] > 0:
			out[i] += fitted * fitted / (d.n * d.share[i])
		}
		out[i] = max(out[i], leastNoise/d.n*(1/d.m+1/d.n))
	}
	return out
}

// leastNoise keeps symbols that the reference lacks, or nearly so, from weighing everything: theirs is the noise of
// half a row there.
const leastNoise = .5

// prior is the shares of the classes in the reference.
func (d *model) prior() []float64 {
	p := make([]float64, len(d.rows))
	var n float64
	for _, x := range d.rows {
		n += x
	}
	for x := range p {
		p[x] = d.rows[x] / n
	}
	return p
}
