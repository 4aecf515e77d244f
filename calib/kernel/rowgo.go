package kernel

import "math"

// lane holds the running sums of one of the 16 lanes.
type lane struct{ s, d, q, second float32 }

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
	v.inv = 1 / v.exp(mx)
	return v
}

// exp returns 2^(x·log2(e)/t - mq).
func (v *scaling) exp(x float32) float32 {
	t := fma32(x, v.hi, v.bias)
	k := t - v.bias
	r := fma32(x, v.hi, -k)
	r = fma32(x, v.lo, r)
	c := &expCoef
	e := fma32(c[0], r, c[1])
	e = fma32(e, r, c[2])
	e = fma32(e, r, c[3])
	e = fma32(e, r, c[4])
	e = fma32(e, r, c[5])
	e = fma32(e, r, 1)
	return float32(e * math.Float32frombits(math.Float32bits(t)<<23))
}

// add adds x to l and returns e = exp((x-max)/t) and whether x equals the maximum.
func (v *scaling) add(l *lane, x float32) (e float32, equal bool) {
	if x == v.max {
		return 1, true
	}
	raised := x
	if v.low > x {
		raised = v.low
	}
	e = v.exp(raised)
	l.s += e
	l.q = fma32(e, e, l.q)
	l.d = fma32(x-v.max, e, l.d)
	if e > l.second {
		l.second = e
	}
	e = float32(e * v.inv)
	if e > 1 {
		e = 1
	}
	return e, false
}

// rowSums fills the sums of row i of a, in the order of operations that all paths share. out may be nil.
func (a *sums) rowSums(i int, out, z []float32, p *params) {
	mx := z[0]
	for _, x := range z {
		if !(mx > x) { // a NaN stays in one of the sums
			mx = x
		}
	}
	v := p.scalingOf(mx)
	a.max[i], a.count[i], a.arg[i] = mx, 0, -1
	a.s[i], a.d[i], a.q[i], a.second[i] = 0, 0, 0, 0
	if len(z) < columnK {
		a.shortRow(i, out, z, &v)
	} else {
		a.longRow(i, out, z, &v)
	}
}

// element is the part in row i of its j-th element, x: l is its lane. It returns e.
func (a *sums) element(i, j int, x float32, l *lane, v *scaling) (e float32) {
	e, equal := v.add(l, x)
	if equal {
		a.count[i]++
		if uint32(j) < uint32(a.arg[i]) {
			a.arg[i] = int32(j)
		}
	}
	return e
}

// put keeps e where it is asked for.
func put(out []float32, j int, e float32) {
	if out != nil {
		out[j] = e
	}
}

// shortRow is one lane, flushed every 16 elements.
func (a *sums) shortRow(i int, out, z []float32, v *scaling) {
	for at := 0; at < len(z); at += flushEvery {
		l := lane{q: sumP2Start, second: a.second[i]}
		for j := at; j < min(at+flushEvery, len(z)); j++ {
			put(out, j, a.element(i, j, z[j], &l, v))
		}
		a.s[i] += float64(l.s)
		a.d[i] += float64(l.d)
		a.q[i] += float64(l.q)
		a.second[i] = l.second
	}
}

// longRow is 16 lanes. The last 16 elements come first if K is not a multiple of 16, those of them that belong to
// whole vectors left out. A flush adds lane j and then lane j+8 to the j-th of 8 float64, which are summed in a tree.
func (a *sums) longRow(i int, out, z []float32, v *scaling) {
	var l [lanes]lane
	for j := range l {
		l[j].q = sumP2Start
	}
	for j := len(z) &^ (lanes - 1); j < len(z); j++ {
		put(out, j, a.element(i, j, z[j], &l[lanes-(len(z)-j)], v))
	}
	var s, d, q [lanes / 2]float64
	whole := len(z) / lanes
	for from := 0; from < whole; from += flushEvery {
		for j := from * lanes; j < min(from+flushEvery, whole)*lanes; j++ {
			put(out, j, a.element(i, j, z[j], &l[j%lanes], v))
		}
		for j := range l {
			s[j%8] += float64(l[j].s)
			d[j%8] += float64(l[j].d)
			q[j%8] += float64(l[j].q)
			l[j] = lane{q: sumP2Start, second: l[j].second}
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
	v := p.scalingOf(mx)
	mq := magicBias - v.bias
	c, beta, count := float64(v.inv), p.beta, float64(a.count[i])
	tied := count - 1
	second := max(float64(min(float32(a.second[i]*v.inv), 1)), min(tied, 1))
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
