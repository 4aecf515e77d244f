package kernel

import "math"

const (
	// probabilities up to it add nothing to the sums; those of rows in which they matter are float64.
	probFloor = 0x1p-120
	// minEntropy: a row whose entropy is below K·minEntropy may have lost more than 1e-7 of it to probFloor.
	minEntropy = 0x1p-90
	sqrtHalf32 = 0x3f3504f3 // the bits of √½, where the mantissa's interval begins
	exponent32 = 0xff800000
	ln2Single  = 0x1.62e430p-1 // within 3e-9 of ln 2
)

// lnCoef32 is ln(1+f) = f + f·Σ c_i f^i for 1+f in [√½, √2), relative error 4e-8, from degree 8 to 1.
var lnCoef32 = [...]float32{
	0x1.65bc38p-4, -0x1.250168p-3, 0x1.3185b2p-3, -0x1.535da8p-3, 0x1.98d2c0p-3, -0x1.000498p-2, 0x1.5556f4p-2,
	-0x1.fffffap-2,
}

// probSums are those of 16 rows of probabilities. The vector paths know the layout.
type probSums struct {
	top, second [lanes]uint32 // bits: from 0 to 1 they are in the order of the numbers, and above 1's for all others
	arg         [lanes]int32
	sum, h, p2  [lanes]float64 // Σq, -Σ q ln q, Σq²
}

// probLane holds the running sums of one lane.
type probLane struct{ h, p2 float32 }

// ln32 returns ln x of a normal number, to a relative 3e-7, also near 1, where x - 1 is exact.
func ln32(x float32) float32 {
	b := math.Float32bits(x)
	k := (b - sqrtHalf32) & exponent32
	f := math.Float32frombits(b-k) - 1
	p := lnCoef32[0]
	for _, c := range lnCoef32[1:] {
		p = fma32(p, f, c)
	}
	p = fma32(p, f, 1)
	return fma32(float32(int32(k)>>23), ln2Single, float32(p*f))
}

// add adds the j-th probability of row i to its sums; sum is the lane's Σq.
func (a *probSums) add(i int, l *probLane, sum *float64, q float32, j int) {
	b := math.Float32bits(q)
	if b > a.top[i] {
		a.top[i], a.second[i], a.arg[i] = b, a.top[i], int32(j)
	} else if b > a.second[i] {
		a.second[i] = b
	}
	if !(q > probFloor) {
		return
	}
	l.h = fma32(-q, ln32(q), l.h)
	l.p2 = fma32(q, q, l.p2)
	*sum += float64(q)
}

// rowSums fills the sums of row i, in the order of operations that all paths share.
func (a *probSums) rowSums(i int, q []float32) {
	a.top[i], a.second[i], a.arg[i] = 0, 0, 0
	if len(q) < columnK {
		a.shortRow(i, q)
	} else {
		a.longRow(i, q)
	}
}

// shortRow is one lane, flushed every 16 elements.
func (a *probSums) shortRow(i int, q []float32) {
	var sum, h, p2 float64
	for at := 0; at < len(q); at += flushEvery {
		l := probLane{p2: sumP2Start}
		for j := at; j < min(at+flushEvery, len(q)); j++ {
			a.add(i, &l, &sum, q[j], j)
		}
		h += float64(l.h)
		p2 += float64(l.p2)
	}
	a.sum[i], a.h[i], a.p2[i] = sum, h, p2
}

// longRow is 16 lanes, element j in lane j mod 16. A flush, after each 16 whole vectors and after the elements beyond
// them, adds lane j and then lane j+8 to the j-th of 8 float64. Σq goes to those at once.
func (a *probSums) longRow(i int, q []float32) {
	var sum, h, p2 [lanes / 2]float64
	whole := len(q) &^ (lanes - 1)
	for from := 0; from < len(q); {
		to := min(from+flushEvery*lanes, whole)
		if from == whole {
			to = len(q)
		}
		var l [lanes]probLane
		for j := range l {
			l[j].p2 = sumP2Start
		}
		for j := from; j < to; j++ {
			a.add(i, &l[j%lanes], &sum[j%8], q[j], j)
		}
		for j := range l {
			h[j%8] += float64(l[j].h)
			p2[j%8] += float64(l[j].p2)
		}
		from = to
	}
	a.sum[i], a.h[i], a.p2[i] = tree(&sum), tree(&h), tree(&p2)
}

// finish makes the row of lane i. It returns false for a row that Probs' own arithmetic must do or refuse: one that is
// no distribution, whose entropy normalising would cancel, or whose entropy lies in probabilities that were left out.
func (a *probSums) finish(r *Row, i int, least float64) bool {
	top, second := float64(math.Float32frombits(a.top[i])), float64(math.Float32frombits(a.second[i]))
	s, off := a.sum[i], math.Abs(a.sum[i]-1)
	exact := off <= probSumExact
	if exact {
		s = 1
	}
	if !(top > 0 && top <= 1 && off <= probSumSlack) {
		return false
	}
	scale, lse := 1/s, lnNormal(s)
	h := math.FMA(a.h[i], scale, lse)
	*r = Row{
		Arg: int(a.arg[i]), Max: lnNormal(top), LSE: lse,
		Conf: top / s, Second: second / s,
		Entropy: h, SumP2: float64(a.p2[i] * float64(scale*scale)),
		Scale: scale, OK: true,
	}
	return h >= max(least, -lse) || exact && second == 0
}

// blockGo is block in plain Go.
func (a *probSums) blockGo(rows []Row, q []float32, k int, least float64) (bad uint32) {
	for i := range rows {
		a.rowSums(i, q[i*k:(i+1)*k])
		if !a.finish(&rows[i], i, least) {
			bad |= 1 << i
		}
	}
	return bad
}
