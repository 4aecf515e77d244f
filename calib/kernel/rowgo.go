package kernel

import "math"

// lane holds the running sums of one of the 16 lanes.
type lane struct{ s, d, q, second float32 }

// goSums are the sums with room for the e' of the elements between two flushes.
type goSums struct {
	*sums
	e [flushEvery * lanes]float32
}

// scaling are the numbers of a row that its maximum gives.
type scaling struct {
	hi, lo   float32
	max, low float32 // low is what smaller elements are raised to: e is exactly 0 there
	bias     float32 // magicBias less the integer nearest to max·hi
	inv      float32 // 1/e of the maximum
}

func (p *params) scalingOf(mx float32) scaling {
	mq := fma32(mx, p.hi, magic32) - magic32
	v := scaling{hi: p.hi, lo: p.lo, max: mx, bias: magicBias - mq, low: (mq - zeroScale) * p.inv}
	e := [1]float32{mx}
	v.exps(e[:], e[:])
	v.inv = 1 / e[0]
	return v
}

// exps sets e_j = 2^(z_j·log2(e)/t - mq); e may be z.
func (v *scaling) exps(e, z []float32) {
	hi, lo, bias, low := v.hi, v.lo, v.bias, v.low
	c0, c1, c2, c3, c4, c5 := expCoef[0], expCoef[1], expCoef[2], expCoef[3], expCoef[4], expCoef[5]
	e = e[:len(z)]
	for j, x := range z {
		if low > x {
			x = low
		}
		t := fma32(x, hi, bias)
		k := t - bias
		r := fma32(x, lo, fma32(x, hi, -k))
		y := fma32(c0, r, c1)
		y = fma32(y, r, c2)
		y = fma32(y, r, c3)
		y = fma32(y, r, c4)
		y = fma32(y, r, c5)
		y = fma32(y, r, 1)
		e[j] = y * math.Float32frombits(math.Float32bits(t)<<23)
	}
}

// sum adds every stride-th element from at on to l.
func (v *scaling) sum(l *lane, e, z []float32, at, stride int) {
	sum, mx := *l, v.max
	z = z[:len(e)]
	for j := at; j < len(e); j += stride {
		x := e[j]
		sum.s += x
		sum.q = fma32(x, x, sum.q)
		sum.d = fma32(z[j]-mx, x, sum.d)
		if x > sum.second {
			sum.second = x
		}
	}
	*l = sum
}

// take makes e' of the elements of row i from the first one on, and writes e where it is asked for.
func (a *goSums) take(i, first int, out, z []float32, v *scaling) {
	e := a.e[:len(z)]
	v.exps(e, z)
	for j, x := range z {
		if x == v.max {
			a.equal(i, first+j)
			e[j] = 0
		}
	}
	if out == nil {
		return
	}
	for j, x := range z {
		out[j] = min(e[j]*v.inv, 1)
		if x == v.max {
			out[j] = 1
		}
	}
}

// equal counts element j of row i, which equals the maximum.
func (a *goSums) equal(i, j int) {
	a.count[i]++
	a.arg[i] = int32(min(uint32(a.arg[i]), uint32(j)))
}

// rowSums fills the sums of row i of a, in the order of operations that all paths share. out may be nil.
func (a *goSums) rowSums(i int, out, z []float32, p *params) {
	mx := z[0]
	for _, x := range z {
		if x > mx { // a NaN stays in one of the sums
			mx = x
		}
	}
	v := p.scalingOf(mx)
	a.max[i], a.count[i], a.arg[i], a.inv[i] = mx, 0, -1, v.inv
	a.s[i], a.d[i], a.q[i], a.second[i] = 0, 0, 0, 0
	if len(z) < columnK {
		a.shortRow(i, out, z, &v)
	} else {
		a.longRow(i, out, z, &v)
	}
}

// shortRow is one lane, flushed every 16 elements.
func (a *goSums) shortRow(i int, out, z []float32, v *scaling) {
	a.take(i, 0, out, z, v)
	for at := 0; at < len(z); at += flushEvery {
		l := lane{q: sumP2Start, second: a.second[i]}
		end := min(at+flushEvery, len(z))
		v.sum(&l, a.e[:end], z, at, 1)
		a.s[i] += float64(l.s)
		a.d[i] += float64(l.d)
		a.q[i] += float64(l.q)
		a.second[i] = l.second
	}
}

// longRow is 16 lanes. The last 16 elements come first if K is not a multiple of 16, those of them that belong to
// whole vectors left out. A flush adds lane j and then lane j+8 to the j-th of 8 float64, which are summed in a tree.
func (a *goSums) longRow(i int, out, z []float32, v *scaling) {
	var l [lanes]lane
	for j := range l {
		l[j].q = sumP2Start
	}
	whole := len(z) &^ (lanes - 1)
	if last := z[whole:]; len(last) > 0 {
		a.take(i, whole, part(out, whole, len(z)), last, v)
		for j := range last {
			v.sum(&l[lanes-len(last)+j], a.e[:len(last)], last, j, lanes)
		}
	}
	var s, d, q [lanes / 2]float64
	for from := 0; from < whole; from += flushEvery * lanes {
		end := min(from+flushEvery*lanes, whole)
		z := z[from:end]
		a.take(i, from, part(out, from, end), z, v)
		for j := range l {
			at := &l[j]
			v.sum(at, a.e[:len(z)], z, j, lanes)
			s[j%8] += float64(at.s)
			d[j%8] += float64(at.d)
			q[j%8] += float64(at.q)
			at.s, at.d, at.q = 0, 0, sumP2Start
		}
	}
	a.s[i], a.d[i], a.q[i] = tree(&s), tree(&d), tree(&q)
	for j := range l {
		a.second[i] = max(a.second[i], l[j].second)
	}
}

func tree(v *[lanes / 2]float64) float64 {
	return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
}

// finish makes the row of lane i. It returns false for a row that the float64 path must do: one that is not finite,
// or whose numbers leave the range of the float32 arithmetic.
func (a *sums) finish(r *Row, i int, p *params) bool {
	mx := a.max[i]
	mq := fma32(mx, p.hi, magic32) - magic32
	c, beta, count := float64(a.inv[i]), p.beta, float64(a.count[i])
	tied := count - 1
	second := max(float64(min(float32(a.second[i]*a.inv[i]), 1)), min(tied, 1))
	s := float64(a.s[i] * c)
	sum := count + s
	conf := 1 / sum
	lnSum := math.FMA(s-(sum-count), conf, lnNormal(sum))
	weighted := float64(float64(a.d[i]*c) * beta)
	*r = Row{
		Arg: int(a.arg[i]), Max: math.FMA(float64(mx), beta, 0), LSE: math.FMA(float64(mx), beta, lnSum),
		Conf: conf, Second: second * conf,
		Entropy: math.FMA(-weighted, conf, lnSum),
		SumP2:   float64(math.FMA(a.q[i], float64(c*c), count)*conf) * conf,
		Scale:   conf, OK: true,
	}
	return mq <= maxExponent && mq >= -maxExponent && a.d[i] <= 0 && max(s, tied) >= p.rest
}
