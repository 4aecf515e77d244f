package loss

import "math"

// sbece is the soft-binned ECE, between bin means (bin) or between each row's confidence and its bins' accuracies (lb):
//
//	bin: (1/n Σ_j S_j |A_j − C_j|^p)^(1/p)      lb: (1/n Σ_i Σ_j u_ij |A_j − c_i|^p)^(1/p)
//	u_i = softmax_j(−(c_i − ξ_j)²/T),  ξ_j = (j + ½)/M
//	S_j = Σ_i u_ij,  A_j = Σ_i u_ij a_i/S_j,  C_j = Σ_i u_ij c_i/S_j
//
// The gradient goes through c, u, A and C. At value 0 it is 0.
// Reference: Karandikar et al., Soft Calibration Objectives for Neural Networks, NeurIPS 2021, Eq. 8-12, with the outer
// root; the released code has centres on [1/K, 1], mixes 1e-5 in and omits the root of lb.
type sbece struct {
	bins        int
	temperature float64
	norm        float64
	lb          bool

	u          []float64 // n×M
	s, acc, by []float64 // M: S, A; ∂V/∂A (lb)
	gap        []float64 // M: A − C
}

func (l *sbece) add(r *rows, scale float64, grad []float64) float64 {
	l.assign(r)
	var v float64
	if l.lb {
		v = l.lbPower(r)
	} else {
		v = l.binPower(r)
	}
	value := math.Pow(v, 1/l.norm)
	if grad != nil && v > 0 {
		outer := scale * value / v / l.norm // of v^(1/p)
		for i := range r.n {
			s := l.binSlope(r, i)
			if l.lb {
				s = l.lbSlope(r, i)
			}
			r.addProb(r.part(grad, i), i, int(r.top[i]), outer*s/float64(r.n))
		}
	}
	return value
}

func (l *sbece) centre(j int) float64 { return (float64(j) + 0.5) / float64(l.bins) }

// assign fills u, S, A and A − C.
func (l *sbece) assign(r *rows) {
	m := l.bins
	l.u, l.s, l.acc = grow(l.u, r.n*m), grow(l.s, m), grow(l.acc, m)
	l.by, l.gap = grow(l.by, m), grow(l.gap, m)
	clear(l.s)
	clear(l.acc)
	clear(l.gap)
	for i := range r.n {
		c, a, u := r.conf(i), r.hit(i), l.u[i*m:(i+1)*m]
		near := min(int(c*float64(m)), m-1)
		least := c - l.centre(near)
		var sum float64
		for j := range u {
			e := c - l.centre(j)
			u[j] = math.Exp((least*least - e*e) / l.temperature)
			sum += u[j]
		}
		for j := range u {
			u[j] /= sum
			l.s[j] += u[j]
			l.acc[j] += u[j] * a
			l.gap[j] += u[j] * (a - c)
		}
	}
	for j, s := range l.s {
		if s > 0 {
			l.acc[j] /= s
			l.gap[j] /= s
		}
	}
}

// binPower is V = 1/n Σ_j S_j |gap_j|^p.
func (l *sbece) binPower(r *rows) float64 {
	var v float64
	for j, s := range l.s {
		v += s * math.Pow(math.Abs(l.gap[j]), l.norm)
	}
	return v / float64(r.n)
}

// binSlope is n·∂V/∂c_i. With G_j = Σ_i u_ij (a_i − c_i), n·V = Σ_j S_j^(1−p) |G_j|^p.
func (l *sbece) binSlope(r *rows, i int) float64 {
	c, a, u := r.conf(i), r.hit(i), l.u[i*l.bins:(i+1)*l.bins]
	var mean, sum float64
	for j, uj := range u {
		mean += uj * l.centre(j)
	}
	for j, uj := range u {
		if uj == 0 || l.gap[j] == 0 {
			continue
		}
		power := math.Pow(math.Abs(l.gap[j]), l.norm)
		byG := l.norm * power / l.gap[j]
		byU := (1-l.norm)*power + byG*(a-c)
		sum += byU*uj*2/l.temperature*(l.centre(j)-mean) - byG*uj
	}
	return sum
}

// lbPower is V = 1/n Σ_i Σ_j u_ij |A_j − c_i|^p; it also fills by.
func (l *sbece) lbPower(r *rows) float64 {
	clear(l.by)
	var v float64
	for i := range r.n {
		c := r.conf(i)
		for j, uj := range l.u[i*l.bins : (i+1)*l.bins] {
			if e := l.acc[j] - c; uj != 0 && e != 0 {
				power := uj * math.Pow(math.Abs(e), l.norm)
				v += power
				l.by[j] += l.norm * power / e
			}
		}
	}
	return v / float64(r.n)
}

// lbSlope is n·∂V/∂c_i.
func (l *sbece) lbSlope(r *rows, i int) float64 {
	c, a, u := r.conf(i), r.hit(i), l.u[i*l.bins:(i+1)*l.bins]
	var mean, sum float64
	for j, uj := range u {
		mean += uj * l.centre(j)
	}
	for j, uj := range u {
		if uj == 0 {
			continue
		}
		byU := l.by[j] * (a - l.acc[j]) / l.s[j]
		if e := l.acc[j] - c; e != 0 {
			power := math.Pow(math.Abs(e), l.norm)
			byU += power
			sum -= uj * l.norm * power / e
		}
		sum += byU * uj * 2 / l.temperature * (l.centre(j) - mean)
	}
	return sum
}
