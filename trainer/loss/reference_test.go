package loss

import (
	"math"
	"sort"
)

// The references follow the formulas of docs/math.md one by one, slowly. A reference takes the logits z and the logits
// at which everything detached is computed, so that its central differences are the gradient with those constants.
type reference func(z, at [][]float64, y []int) float64

func probs(z []float64) []float64 {
	m := z[0]
	for _, v := range z {
		m = math.Max(m, v)
	}
	p, s := make([]float64, len(z)), 0.0
	for k, v := range z {
		p[k] = math.Exp(v - m)
		s += p[k]
	}
	for k := range p {
		p[k] /= s
	}
	return p
}

func logProbs(z []float64) []float64 {
	m := z[0]
	for _, v := range z {
		m = math.Max(m, v)
	}
	s, l := 0.0, make([]float64, len(z))
	for _, v := range z {
		s += math.Exp(v - m)
	}
	for k, v := range z {
		l[k] = v - m - math.Log(s)
	}
	return l
}

func argmax(z []float64) int {
	best := 0
	for k := range z {
		if z[k] > z[best] {
			best = k
		}
	}
	return best
}

func entropyOf(z []float64) float64 {
	var h float64
	l := logProbs(z)
	for k, p := range probs(z) {
		h -= p * l[k]
	}
	return h
}

func hit(z []float64, y int) float64 {
	if argmax(z) == y {
		return 1
	}
	return 0
}

func mean(n int, f func(i int) float64) float64 {
	var s float64
	for i := range n {
		s += f(i)
	}
	return s / float64(n)
}

// perRow is a reference that is a mean of losses of single rows.
func perRow(f func(z, at []float64, y int) float64) reference {
	return func(z, at [][]float64, y []int) float64 {
		return mean(len(z), func(i int) float64 { return f(z[i], at[i], y[i]) })
	}
}

func nllOf(z []float64, y int) float64 { return -logProbs(z)[y] }

func refSquared(z, _ []float64, y int) float64 {
	var s float64
	for k, p := range probs(z) {
		if k == y {
			p--
		}
		s += p * p
	}
	return s
}

func refSmoothing(eps float64) func(z, _ []float64, y int) float64 {
	return func(z, _ []float64, y int) float64 {
		var s float64
		for k, l := range logProbs(z) {
			t := eps / float64(len(z))
			if k == y {
				t += 1 - eps
			}
			s -= t * l
		}
		return s
	}
}

func refFocal(gamma float64) func(z, _ []float64, y int) float64 {
	return func(z, _ []float64, y int) float64 { return math.Pow(1-probs(z)[y], gamma) * nllOf(z, y) }
}

func refFLSD(z, at []float64, y int) float64 {
	if probs(at)[y] < 0.2 {
		return refFocal(5)(z, at, y)
	}
	return refFocal(3)(z, at, y)
}

func refInverse(gamma float64) func(z, _ []float64, y int) float64 {
	return func(z, _ []float64, y int) float64 { return math.Pow(1+probs(z)[y], gamma) * nllOf(z, y) }
}

func refDual(gamma float64, variant string) func(z, at []float64, y int) float64 {
	return func(z, at []float64, y int) float64 {
		p, p0 := probs(z), probs(at)
		strongest := -1
		for k := range p {
			if k != y && (strongest < 0 || p0[k] > p0[strongest]) {
				strongest = k
			}
		}
		if variant == "eq25_26" && p0[y] < p0[argmax(at)] {
			strongest = -1
		}
		if variant == "released" {
			strongest = -1
			for k := range p {
				if p0[k] < p0[y] && (strongest < 0 || p0[k] > p0[strongest]) {
					strongest = k
				}
			}
		}
		pj := 0.0
		if strongest >= 0 {
			pj = p[strongest]
		}
		return math.Pow(1-p[y]+pj, gamma) * nllOf(z, y)
	}
}

func refCSF(csf string, z []float64) float64 {
	p := probs(z)
	switch csf {
	case "margin":
		s := append([]float64(nil), p...)
		sort.Float64s(s)
		return s[len(s)-1] - s[len(s)-2]
	case "negent":
		return 1 - entropyOf(z)/math.Log(float64(len(z)))
	}
	return p[argmax(z)]
}

// refRank orders rows as refCSF does, and rows whose 1 - H/ln K rounds to 1 by H.
func refRank(csf string, z []float64) float64 {
	if csf == "negent" {
		return -entropyOf(z)
	}
	return refCSF(csf, z)
}

func harmonic(n int) (h float64) {
	for j := 1; j <= n; j++ {
		h += 1 / float64(j)
	}
	return h
}

func refAURC(csf string, inner func(z, at []float64, y int) float64) reference {
	return func(z, at [][]float64, y []int) float64 {
		n := len(z)
		return mean(n, func(i int) float64 {
			var w, ties float64
			below := 0
			for j := range n {
				switch gi, gj := refRank(csf, at[i]), refRank(csf, at[j]); {
				case gj < gi:
					below++
				case gj == gi:
					ties++
				}
			}
			for r := below + 1; r <= below+int(ties); r++ {
				w += (harmonic(n) - harmonic(n-r)) / ties
			}
			return w * inner(z[i], at[i], y[i])
		})
	}
}

type refAU struct {
	csf                string
	nu, kappa          float64
	through, normalise bool
	counts             []float64
	inner              func(z, at []float64, y int) float64
}

func (c refAU) value(z, at [][]float64, y []int) float64 {
	n := len(z)
	h := c.counts
	if h == nil {
		h = make([]float64, 50)
		for i := range at {
			g := refCSF(c.csf, at[i])
			for k := range h {
				if lo, hi := float64(k)/50, float64(k+1)/50; g >= lo && (g < hi || k == 49) {
					h[k]++
					break
				}
			}
		}
	}
	cdf := func(g float64) float64 {
		var sum, total float64
		for k, hk := range h {
			ck := (float64(k) + 0.5) / float64(len(h))
			sum += hk / (1 + math.Exp(-(g-ck)/c.nu))
			total += hk
		}
		return math.Min(math.Max(sum/total, 1/(total+1)), total/(total+1))
	}
	var g []float64
	for i := range at {
		g = append(g, refCSF(c.csf, at[i]))
	}
	sort.Float64s(g)
	pos := c.kappa * float64(n-1)
	lo, hi := int(math.Floor(pos)), int(math.Ceil(pos))
	tau := g[lo] + (pos-float64(lo))*(g[hi]-g[lo])
	beta := func(row []float64, free bool) float64 {
		v := refCSF(c.csf, row)
		if free {
			return -math.Log(1 - cdf(v))
		}
		return -math.Log(1 - cdf(math.Min(v, tau)))
	}
	norm := 1.0
	if c.normalise {
		norm = mean(n, func(i int) float64 { return beta(at[i], false) })
	}
	return mean(n, func(i int) float64 {
		b := beta(at[i], false)
		if c.through && refCSF(c.csf, at[i]) < tau {
			b = beta(z[i], true)
		}
		return b / norm * c.inner(z[i], at[i], y[i])
	})
}

func refSBECE(m int, t, p float64, lb bool) reference {
	return func(z, at [][]float64, y []int) float64 {
		n := len(z)
		u := make([][]float64, n)
		c, a := make([]float64, n), make([]float64, n)
		for i := range z {
			c[i], a[i] = probs(z[i])[argmax(at[i])], hit(at[i], y[i])
			e := make([]float64, m)
			for j := range m {
				xi := (float64(j) + 0.5) / float64(m)
				e[j] = -(c[i] - xi) * (c[i] - xi) / t
			}
			u[i] = probs(e)
		}
		var v float64
		for j := range m {
			var s, ac, cc float64
			for i := range n {
				s, ac, cc = s+u[i][j], ac+u[i][j]*a[i], cc+u[i][j]*c[i]
			}
			if s == 0 {
				continue
			}
			if !lb {
				v += s / float64(n) * math.Pow(math.Abs(ac/s-cc/s), p)
				continue
			}
			for i := range n {
				v += u[i][j] / float64(n) * math.Pow(math.Abs(ac/s-c[i]), p)
			}
		}
		return math.Pow(v, 1/p)
	}
}

func refAvUC(kappa float64, stop bool) reference {
	return func(z, at [][]float64, y []int) float64 {
		var ac, au, ic, iu float64
		for i := range z {
			h, c := entropyOf(z[i]), probs(z[i])[argmax(at[i])]
			if stop {
				c = probs(at[i])[argmax(at[i])]
			}
			certain := entropyOf(at[i]) < kappa
			switch {
			case hit(at[i], y[i]) == 1 && certain:
				ac += c * (1 - math.Tanh(h))
			case hit(at[i], y[i]) == 1:
				au += c * math.Tanh(h)
			case certain:
				ic += (1 - c) * (1 - math.Tanh(h))
			default:
				iu += (1 - c) * math.Tanh(h)
			}
		}
		return math.Log(1 + (au+ic)/math.Max(ac+iu, 1e-5))
	}
}

func refSAvUC(kappa, t float64, unit bool) reference {
	return func(z, at [][]float64, y []int) float64 {
		var ac, au, ic, iu float64
		for i := range z {
			h := entropyOf(z[i])
			e := h / math.Log(float64(len(z[i])))
			u := 1 / (1 + math.Pow((1-e)*kappa/(e*(1-kappa)), 1/t))
			v := math.Tanh(h)
			if unit {
				v = math.Tanh(e)
			}
			if hit(at[i], y[i]) == 1 {
				ac, au = ac+(1-u)*(1-v), au+u*v
			} else {
				ic, iu = ic+(1-u)*(1-v), iu+u*v
			}
		}
		return math.Log(1 + (au+ic)/math.Max(ac+iu, 1e-5))
	}
}

func refMMCE(root bool) reference {
	return func(z, at [][]float64, y []int) float64 {
		n := len(z)
		var v float64
		for i := range n {
			for j := range n {
				ci, cj := probs(z[i])[argmax(at[i])], probs(z[j])[argmax(at[j])]
				v += (hit(at[i], y[i]) - ci) * (hit(at[j], y[j]) - cj) * math.Exp(-math.Abs(ci-cj)/0.4)
			}
		}
		v /= float64(n * n)
		if root {
			return math.Sqrt(math.Max(v, 0))
		}
		return v
	}
}

func refMbLS(lambda, m float64, eq15 bool) func(z, at []float64, _ int) float64 {
	return func(z, at []float64, _ int) float64 {
		var s float64
		for k, v := range z {
			if !eq15 {
				s += math.Max(0, z[argmax(at)]-v-m)
			} else if k != argmax(at) {
				s += math.Max(0, at[argmax(at)]-v-m)
			}
		}
		if !eq15 {
			s /= float64(len(z))
		}
		return lambda * s
	}
}

func refACLS(l1, l2, m float64, released bool) func(z, at []float64, _ int) float64 {
	sq := func(x float64) float64 { return math.Max(0, x) * math.Max(0, x) }
	return func(z, at []float64, _ int) float64 {
		top, lo := argmax(at), math.Inf(1)
		for _, v := range at {
			lo = math.Min(lo, v)
		}
		var neg float64
		for k, v := range z {
			if k != top {
				neg += sq(at[top] - v - m)
			}
		}
		if released {
			return l1*sq(z[top]-m) + l2*neg/float64(len(z)-1)
		}
		return (l1*sq(z[top]-lo-m) + l2*neg) / 2
	}
}

func refMDCA(z, _ [][]float64, y []int) float64 {
	k := len(z[0])
	return mean(k, func(c int) float64 {
		var p, f float64
		for i := range z {
			p += probs(z[i])[c]
			if y[i] == c {
				f++
			}
		}
		return math.Abs(p-f) / float64(len(z))
	})
}

func refCPC(l1, l2 float64, cals bool) func(z, _ []float64, y int) float64 {
	logSigma := func(x float64) float64 { return math.Min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))) }
	return func(z, _ []float64, y int) float64 {
		k := float64(len(z))
		var one, two float64
		for j := range z {
			if j == y {
				continue
			}
			one -= logSigma(z[y] - z[j])
			for l := range z {
				switch {
				case l == y:
				case cals:
					two -= logSigma(z[j]-z[l]) / 2
				case l != j:
					two -= logSigma(z[j]-z[l]) + logSigma(z[l]-z[j])
				}
			}
		}
		if cals {
			one /= k - 1
			two /= math.Max((k-1)*(k-2), 1)
			if len(z) == 2 {
				two = 0
			}
		}
		return l1*one + l2*two
	}
}

func refCRL(csf string, history []float64) reference {
	return func(z, at [][]float64, y []int) float64 {
		n := len(z)
		h := history
		if h == nil {
			for i := range at {
				h = append(h, hit(at[i], y[i]))
			}
		}
		return mean(n, func(i int) float64 {
			j := (i + 1) % n
			g := 0.0
			if h[i] != h[j] {
				g = math.Copysign(1, h[i]-h[j])
			}
			return math.Max(0, -g*(refCSF(csf, z[i])-refCSF(csf, z[j]))+math.Abs(h[i]-h[j]))
		})
	}
}

func refKDE(b, q float64) reference {
	return func(z, _ [][]float64, y []int) float64 {
		n := len(z)
		if n == 1 {
			return 0
		}
		return mean(n, func(i int) float64 {
			logs, most := make([]float64, n), math.Inf(-1)
			for j := range n {
				var sum, alphas float64
				for k, lp := range logProbs(z[i]) {
					alpha := probs(z[j])[k]/b + 1
					lg, _ := math.Lgamma(alpha)
					sum += (alpha-1)*lp - lg
					alphas += alpha
				}
				lg, _ := math.Lgamma(alphas)
				if logs[j] = sum + lg; j != i {
					most = math.Max(most, logs[j])
				}
			}
			num, den := make([]float64, len(z[0])), 0.0
			for j := range n {
				if j != i {
					num[y[j]] += math.Exp(logs[j] - most)
					den += math.Exp(logs[j] - most)
				}
			}
			var e float64
			for k, p := range probs(z[i]) {
				e += math.Pow(math.Abs(num[k]/den-p), q)
			}
			return e
		})
	}
}

func refClassWise(alpha, beta float64, printed bool, inner func(z, at []float64, y int) float64) reference {
	classLosses := func(z, at [][]float64, y []int) map[int]float64 {
		l, m := map[int]float64{}, map[int]float64{}
		for i := range z {
			l[y[i]] += inner(z[i], at[i], y[i])
			m[y[i]]++
		}
		for k := range l {
			if !printed {
				l[k] /= m[k]
			}
		}
		return l
	}
	return func(z, at [][]float64, y []int) float64 {
		a := alpha
		if a == 0 {
			a = math.Log(float64(len(z[0]))) / 2
		}
		frozen := classLosses(at, at, y)
		var mu, sd, v float64
		for _, l := range frozen {
			mu += l / float64(len(frozen))
		}
		free := float64(len(frozen))
		if !printed {
			free--
		}
		for _, l := range frozen {
			sd += (l - mu) * (l - mu) / free
		}
		sd = math.Sqrt(sd)
		for k, l := range classLosses(z, at, y) {
			w := 0.0
			if len(frozen) > 1 && sd > 1e-12*mu {
				w = beta/(1+math.Exp(-(frozen[k]-mu)/sd/a)) - beta/2
			}
			v += (1 + w) * l
		}
		return v
	}
}

func (f reference) plus(w float64, g reference) reference {
	return func(z, at [][]float64, y []int) float64 { return f(z, at, y) + w*g(z, at, y) }
}
