package metric

import (
	"math"
	"math/rand/v2"
	"slices"
)

// inversionMax is the mean n·p up to which walking the distribution from 0 is used; Hörmann's rejection
// sampler needs at least 10.
const inversionMax = 10

// binomial draws exactly from Binomial(n, p): by inversion for small means, else by BTRS, the transformed
// rejection with squeeze, in constant time whatever n.
// Reference: Hörmann, The generation of binomial random variates, J. Stat. Comput. Simul. 46 (1993).
type binomial struct {
	n, p, r float64 // p ≤ 1/2, r = p/(1-p)
	mirror  bool    // draw n - x
	start   float64 // (1-p)^n, inversion only

	a, b, c, vr, alpha, m, hm float64 // BTRS; hm is the log of the mode's probability, up to a constant
}

func newBinomial(n int64, p float64) binomial {
	p = min(1, max(0, p))
	d := binomial{n: float64(n), p: p}
	if p > 0.5 {
		d.p, d.mirror = 1-p, true
	}
	d.r = d.p / (1 - d.p)
	if d.n*d.p <= inversionMax {
		d.start = math.Exp(d.n * math.Log1p(-d.p))
		return d
	}
	sd := math.Sqrt(d.n * d.p * (1 - d.p))
	d.b = 1.15 + 2.53*sd
	d.a = -0.0873 + 0.0248*d.b + 0.01*d.p
	d.c = d.n*d.p + 0.5
	d.vr = 0.92 - 4.2/d.b
	d.alpha = (2.83 + 5.1/d.b) * sd
	d.m = math.Floor((d.n + 1) * d.p)
	d.hm = (d.m+0.5)*math.Log((d.m+1)/(d.r*(d.n-d.m+1))) + stirlingTail(d.m) + stirlingTail(d.n-d.m)
	return d
}

// draw returns one variate as a float64 integer in [0, n].
func (d *binomial) draw(rng *rand.PCG) float64 {
	x := 0.0
	if d.n*d.p <= inversionMax {
		x = d.invert(uniform(rng))
	} else {
		x = d.reject(rng)
	}
	if d.mirror {
		return d.n - x
	}
	return x
}

func uniform(rng *rand.PCG) float64 { return float64(rng.Uint64()>>11) * 0x1p-53 }

func (d *binomial) invert(u float64) float64 {
	x, f := 0.0, d.start
	for u >= f && x < d.n {
		u -= f
		f *= d.r * (d.n - x) / (x + 1)
		x++
	}
	return x
}

func (d *binomial) reject(rng *rand.PCG) float64 {
	for {
		u := uniform(rng) - 0.5
		v := uniform(rng)
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*d.a/us+d.b)*u + d.c)
		if us >= 0.07 && v <= d.vr {
			return k
		}
		if !(k >= 0 && k <= d.n) {
			continue
		}
		x := v * d.alpha / (d.a/(us*us) + d.b)
		bound := d.hm + (d.n+1)*math.Log((d.n-d.m+1)/(d.n-k+1)) +
			(k+0.5)*math.Log(d.r*(d.n-k+1)/(k+1)) - stirlingTail(k) - stirlingTail(d.n-k)
		if math.Log(x) <= bound {
			return k
		}
	}
}

// stirlingTail returns ln k! - [ln sqrt(2π) + (k+½) ln(k+1) - (k+1)]: exact for k < 10, else its series.
func stirlingTail(k float64) float64 {
	if k < float64(len(stirlingTails)) {
		return stirlingTails[int(k)]
	}
	x := 1 / ((k + 1) * (k + 1))
	return (1./12 - (1./360-1./1260*x)*x) / (k + 1)
}

var stirlingTails = func() (tails [10]float64) {
	for i := range tails {
		k := float64(i)
		lg, _ := math.Lgamma(k + 1)
		tails[i] = lg - (0.5*math.Log(2*math.Pi) + (k+0.5)*math.Log(k+1) - (k + 1))
	}
	return tails
}()

// inversion draws many times from one binomial, exactly: a random number is looked up in the table of the distribution,
// from where a guide table says, so that about two entries are compared. Where the table would cost more than that
// spares, it draws one by one.
// Reference: Chen, Asau, On Generating Random Variates from an Empirical Distribution, AIIE Transactions 6 (1974).
type inversion struct {
	d     *binomial
	first float64   // number of the first entry
	upTo  []float64 // upTo[i]: sum of the relative probabilities of first … first+i; empty: no table
	guide []int32   // guide[j]: the first entry with upTo above j/len(guide) of the whole
}

const (
	// negligible ends the table: all numbers less probable than this times the mode are together less than half a step
	// of a uniform random number.
	negligible = 1e-18
	// drawsOfDeviation is how many draws make up for the entries of one standard deviation, about 18.
	drawsOfDeviation = 6
)

// of makes t draw from d about so many times, in the memory that it has.
func (t *inversion) of(d *binomial, draws int) {
	t.d, t.upTo, t.guide = d, t.upTo[:0], t.guide[:0]
	if sd := math.Sqrt(d.n * d.p * (1 - d.p)); sd*drawsOfDeviation > float64(draws) {
		return
	}
	mode := math.Floor((d.n + 1) * d.p)
	for k, w := mode, 1.; k >= 0 && w >= negligible; k-- {
		t.upTo = append(t.upTo, w)
		w *= k / (d.r * (d.n - k + 1))
	}
	t.first = mode - float64(len(t.upTo)-1)
	slices.Reverse(t.upTo)
	for k, w := mode, 1.; k < d.n; k++ {
		if w *= d.r * (d.n - k) / (k + 1); w < negligible {
			break
		}
		t.upTo = append(t.upTo, w)
	}
	sum := 0.
	for i, w := range t.upTo {
		sum += w
		t.upTo[i] = sum
	}
	i, each := int32(0), sum/float64(len(t.upTo))
	for j := range t.upTo {
		for t.upTo[i] <= float64(j)*each {
			i++
		}
		t.guide = append(t.guide, i)
	}
}

// draw fills dst with variates, float64 integers in [0, n].
func (t *inversion) draw(dst []float64, rng *rand.PCG) {
	if len(t.upTo) == 0 {
		for r := range dst {
			dst[r] = t.d.draw(rng)
		}
		return
	}
	upTo := t.upTo[:len(t.upTo)-1]
	all, entries, first, each := t.upTo[len(upTo)], float64(len(t.guide)), t.first, 1.
	if t.d.mirror {
		first, each = t.d.n-t.first, -1
	}
	for r := range dst {
		u := uniform(rng)
		i, v := int(t.guide[int(u*entries)]), u*all
		for i < len(upTo) && upTo[i] <= v {
			i++
		}
		dst[r] = first + each*float64(i)
	}
}
