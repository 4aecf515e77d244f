package loss

import "math"

// avucFloor is the least denominator of the AvUC losses.
const avucFloor = 1e-5

// quad has the four sums of accuracy versus uncertainty.
type quad struct{ ac, au, ic, iu float64 }

// loss is ln(1 + (AU + IC)/max(AC + IU, floor)).
func (q quad) loss() float64 { return math.Log1p((q.au + q.ic) / max(q.ac+q.iu, avucFloor)) }

// slopes are ∂loss/∂(AU + IC) and ∂loss/∂(AC + IU), the latter 0 on the floor.
func (q quad) slopes() (bad, good float64) {
	num, den := q.au+q.ic, max(q.ac+q.iu, avucFloor)
	bad = 1 / (den + num)
	if q.ac+q.iu >= avucFloor {
		good = -num / den / (den + num)
	}
	return bad, good
}

// avuc is the accuracy-versus-uncertainty loss: with h the entropy in nats, a row certain iff h < κ,
//
//	ln(1 + (n_AU + n_IC)/(n_AC + n_IU))
//	n_AC = Σ c(1 − tanh h), n_AU = Σ c tanh h, n_IC = Σ (1 − c)(1 − tanh h), n_IU = Σ (1 − c) tanh h
//
// each over the rows that are accurate or inaccurate, certain or uncertain; the denominator at least 1e-5. With stop
// there is no gradient through c (AvUC-GS).
// Reference: Krishnan, Tickoo, NeurIPS 2020; Karandikar et al., Soft Calibration Objectives, Eq. 13-14.
type avuc struct {
	kappa float64
	stop  bool
}

func (l avuc) add(r *rows, scale float64, grad []float64) float64 {
	var q quad
	for i := range r.n {
		h, c := r.entropy(i), r.conf(i)
		t, certain, hit := math.Tanh(h), h < l.kappa, r.hit(i) == 1
		switch {
		case hit && certain:
			q.ac += c * (1 - t)
		case hit:
			q.au += c * t
		case certain:
			q.ic += r.rest[i] * (1 - t)
		default:
			q.iu += r.rest[i] * t
		}
	}
	if grad != nil {
		bad, good := q.slopes()
		for i := range r.n {
			l.addRow(r, i, r.part(grad, i), scale*bad, scale*good)
		}
	}
	return q.loss()
}

func (l avuc) addRow(r *rows, i int, g []float64, bad, good float64) {
	h, c := r.entropy(i), r.conf(i)
	t, certain, hit := math.Tanh(h), h < l.kappa, r.hit(i) == 1
	s, weight, sign := bad, c, 1.0 // the sum's slope, the factor beside tanh and the sign of c in it
	if hit == certain {
		s = good
	}
	if !hit {
		weight, sign = r.rest[i], -1
	}
	factor, slope := t, 1-t*t // of tanh h or 1 − tanh h
	if certain {
		factor, slope = 1-t, -slope
	}
	r.addEntropy(g, i, s*weight*slope)
	if !l.stop {
		r.addProb(g, i, int(r.top[i]), s*sign*factor)
	}
}

// softAvuc is S-AvUC: with h the entropy in nats and e = h/ln K, every row is uncertain to the degree t,
//
//	t = σ((1/T) ln(e(1 − κ)/((1 − e)κ)))
//	n_AC = Σ_{a=1} (1 − t)(1 − tanh h),  n_AU = Σ_{a=1} t tanh h
//	n_IC = Σ_{a=0} (1 − t)(1 − tanh h),  n_IU = Σ_{a=0} t tanh h
//
// and the loss is that of AvUC. With unit the tanh is of e too, not of h in nats. At e = 1 t is 1 and has no slope.
// Reference: Karandikar et al., Soft Calibration Objectives, Eq. 15-16; the released code is NaN at uniform rows.
type softAvuc struct {
	kappa, temperature float64
	unit               bool
}

// uniformRow is the 1 − e below which a row counts as uniform: about the rounding error of e.
const uniformRow = 1e-15

// degree returns t, 1 − t and ∂t/∂e.
func (l softAvuc) degree(e float64) (t, not, slope float64) {
	switch {
	case e <= 0:
		return 0, 1, 0
	case 1-e <= uniformRow:
		return 1, 0, 0
	}
	x := (math.Log(e) - math.Log1p(-e) + math.Log((1-l.kappa)/l.kappa)) / l.temperature
	t, not = 1/(1+math.Exp(-x)), 1/(1+math.Exp(x))
	return t, not, t * not / (l.temperature * e * (1 - e))
}

func (l softAvuc) tanh(h, most float64) (value, slope float64) {
	scale := 1.0
	if l.unit {
		scale = most
	}
	value = math.Tanh(h / scale)
	return value, (1 - value*value) / scale
}

func (l softAvuc) add(r *rows, scale float64, grad []float64) float64 {
	var q quad
	most := math.Log(float64(r.k))
	for i := range r.n {
		h := r.entropy(i)
		t, not, _ := l.degree(h / most)
		v, _ := l.tanh(h, most)
		if r.hit(i) == 1 {
			q.ac += not * (1 - v)
			q.au += t * v
		} else {
			q.ic += not * (1 - v)
			q.iu += t * v
		}
	}
	if grad == nil {
		return q.loss()
	}
	bad, good := q.slopes()
	for i := range r.n {
		h := r.entropy(i)
		t, not, ts := l.degree(h / most)
		v, vs := l.tanh(h, most)
		certain, uncertain := good, bad
		if r.hit(i) == 0 {
			certain, uncertain = bad, good
		}
		ts /= most
		s := certain*(-ts*(1-v)-not*vs) + uncertain*(ts*v+t*vs)
		r.addEntropy(r.part(grad, i), i, scale*s)
	}
	return q.loss()
}
