package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

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

// inversions spare the memory of tables, which takes longer to allocate than to fill.
var inversions = sync.Pool{New: func() any { return new(inversion) }}

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
