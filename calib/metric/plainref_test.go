package metric_test

import (
	"math"
	"slices"
	"sort"

	"github.com/plumbline/plumbline/calib/metric"
)

// plainRow is a row as the definitions see it: its probabilities, label and weight, in float64.
type plainRow struct {
	p       []float64
	z       []float64 // logits, or nil
	y       int
	w       float64
	c, csf  float64
	a       bool
	nllZero float64 // what a probability of 0 counts as
}

// plainRows works the rows out one by one, with package math alone.
func plainRows(r metric.Rows, csf string) (out []plainRow) {
	for i, y := range r.Labels {
		w := 1.0
		if r.W != nil {
			w = r.W[i]
		}
		if y < 0 || w == 0 {
			continue
		}
		row := plainRow{y: int(y), w: w, nllZero: math.SmallestNonzeroFloat64}
		for k := range r.K {
			if r.F64 != nil {
				row.p = append(row.p, r.F64[i*r.K+k])
			} else {
				row.p = append(row.p, float64(r.F32[i*r.K+k]))
				row.nllZero = math.SmallestNonzeroFloat32
			}
		}
		if !r.Probs {
			row.z = row.p
			row.p = plainSoftmax(row.z)
		} else if s := plainSum(row.p); math.Abs(s-1) > 0x1p-20 {
			for k := range row.p {
				row.p[k] /= s
			}
		}
		row.finish(csf)
		out = append(out, row)
	}
	return out
}

// plainLog is math.Log, which on some platforms is wrong below the normal numbers.
func plainLog(x float64) float64 {
	m, e := math.Frexp(x)
	return math.Log(m) + float64(e)*math.Ln2
}

// plainSum does not depend on the order of x, so that rows of the same scores in another order are tied.
func plainSum(x []float64) (s float64) {
	for _, v := range slices.Sorted(slices.Values(x)) {
		s += v
	}
	return s
}

func plainSoftmax(z []float64) []float64 {
	top, p := math.Inf(-1), make([]float64, len(z))
	for _, v := range z {
		top = max(top, v)
	}
	for k, v := range z {
		p[k] = math.Exp(v - top)
	}
	s := plainSum(p)
	for k := range p {
		p[k] /= s
	}
	return p
}

func (r *plainRow) finish(csf string) {
	arg, second, surprise := 0, 0.0, []float64{}
	from := r.p
	if r.z != nil {
		from = r.z
	}
	for k, v := range from {
		if v > from[arg] {
			arg = k
		}
	}
	for k, v := range r.p {
		if k != arg {
			second = max(second, v)
		}
		if v > 0 {
			surprise = append(surprise, -v*plainLog(v))
		}
	}
	r.c, r.a = r.p[arg], arg == r.y
	switch csf {
	case metric.Margin:
		r.csf = r.c - second
	case metric.NegEnt:
		r.csf = -plainSum(surprise) // the order of 1 - H/ln K
	default:
		r.csf = r.c
	}
}

func (r *plainRow) nll() float64 {
	if r.z == nil {
		if q := r.p[r.y]; q > 0 {
			return -plainLog(q)
		}
		return -plainLog(r.nllZero)
	}
	top, s := math.Inf(-1), 0.0
	for _, v := range r.z {
		top = max(top, v)
	}
	for _, v := range r.z {
		s += math.Exp(v - top)
	}
	return plainLog(s) + (top - r.z[r.y])
}

// plainGaps are the L1, L2 and largest gap of (confidence, outcome, weight) shared out over bins, and the debiased
// square; all is the weight of all rows.
type plainBin struct{ w, w2, c, a float64 }

func plainGaps(bins []plainBin, all float64) (l1, l2, worst, debiased float64) {
	worst = math.NaN()
	for _, b := range bins {
		if b.w <= 0 {
			continue
		}
		gap, acc := math.Abs(b.a-b.c)/b.w, b.a/b.w
		l1 += b.w / all * gap
		l2 += b.w / all * gap * gap
		if !(gap <= worst) {
			worst = gap
		}
		if n := b.w * b.w / b.w2; n >= 2-1e-9 {
			debiased += b.w / all * (gap*gap - acc*(1-acc)/(n-1))
		}
	}
	return l1, math.Sqrt(l2), worst, debiased
}

// plainWidth is the bin (i/m, (i+1)/m] of c, or -1 for 0.
func plainWidth(c float64, m int) int {
	for b := range m {
		if c > float64(b)/float64(m) && (c <= float64(b+1)/float64(m) || b == m-1) {
			return b
		}
	}
	return -1
}

// plainMass shares ascending rows out over bins that end at the given weights.
func plainMass(rows []plainRow, ends []float64) []plainBin {
	bins := make([]plainBin, len(ends))
	low := 0.0
	for _, r := range rows {
		high := low + r.w
		for b := range bins {
			from, to := 0.0, math.Inf(1)
			if b > 0 {
				from = ends[b-1]
			}
			if b < len(bins)-1 {
				to = ends[b]
			}
			if share := (min(high, to) - max(low, from)) / r.w; share > 0 {
				bins[b].w += share * r.w
				bins[b].w2 += share * r.w * share * r.w
				bins[b].c += share * r.w * r.c
				bins[b].a += share * r.w * num(r.a)
			}
		}
		low = high
	}
	return bins
}

// plainEnds are the ends of m equal-mass bins: of whole weights sizes that differ by at most one, the larger first.
func plainEnds(rows []plainRow, m int) []float64 {
	total, whole := 0.0, true
	for _, r := range rows {
		total += r.w
		whole = whole && r.w == math.Trunc(r.w)
	}
	ends, end := make([]float64, m), 0.0
	for b := range ends {
		if whole {
			end += math.Floor(total / float64(m))
			if float64(b) < total-math.Floor(total/float64(m))*float64(m) {
				end++
			}
		} else {
			end = total / float64(m) * float64(b+1)
		}
		ends[b] = end
	}
	return ends
}

// plainMetrics are all keys of the report but those of resampling, and but sweep with weights, by their definitions.
func plainMetrics(rows []plainRow, o metric.Options) map[string]float64 {
	out := map[string]float64{"n": float64(len(rows))}
	var total, right, nll, brier float64
	k := len(rows[0].p)
	width, classes := make([]plainBin, o.Bins), make([]plainBin, k*o.Bins)
	for _, r := range rows {
		total += r.w
		right += r.w * num(r.a)
		nll += r.w * r.nll()
		add := func(b *plainBin, c, a float64) {
			b.w += r.w
			b.c += r.w * c
			b.a += r.w * a
		}
		add(&width[max(0, plainWidth(r.c, o.Bins))], r.c, num(r.a))
		for j, p := range r.p {
			brier += r.w * (p - num(j == r.y)) * (p - num(j == r.y))
			if b := plainWidth(p, o.Bins); b >= 0 {
				add(&classes[j*o.Bins+b], p, num(j == r.y))
			}
		}
	}
	out["accuracy"], out["nll"], out["brier"] = right/total, nll/total, brier/total
	out["ece"], out["ece_l2"], out["mce"], _ = plainGaps(width, total)
	l1, l2, _, _ := plainGaps(classes, total)
	out["cwece"], out["cwece_l2"] = l1/float64(k), l2/math.Sqrt(float64(k))
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].c < rows[j].c })
	var debiased float64
	out["ace"], out["ace_l2"], _, debiased = plainGaps(plainMass(rows, plainEnds(rows, o.Bins)), total)
	out["debiased_l2"] = math.Sqrt(max(0, debiased))
	out["ks"] = plainKS(rows, total)
	out["sbece_bin"], out["sbece_lb"] = plainSoft(rows, total, o)
	plainSelective(rows, out)
	return out
}

func plainKS(rows []plainRow, total float64) (worst float64) {
	for _, t := range rows {
		var sum float64
		for _, r := range rows {
			if r.c <= t.c {
				sum += r.w * (num(r.a) - r.c)
			}
		}
		worst = max(worst, math.Abs(sum)/total)
	}
	return worst
}

func plainSoft(rows []plainRow, total float64, o metric.Options) (bin, lb float64) {
	m := o.SoftBins
	u := func(c float64) []float64 {
		v := make([]float64, m)
		for j := range v {
			d := c - (float64(j)+.5)/float64(m)
			v[j] = -d * d / o.SoftTemperature
		}
		return plainSoftmax(v)
	}
	s, a, c := make([]float64, m), make([]float64, m), make([]float64, m)
	for _, r := range rows {
		for j, v := range u(r.c) {
			s[j] += r.w * v
			a[j] += r.w * v * num(r.a)
			c[j] += r.w * v * r.c
		}
	}
	for j := range s {
		if s[j] > 0 {
			bin += s[j] / total * math.Pow(math.Abs(a[j]/s[j]-c[j]/s[j]), o.Norm)
		}
	}
	for _, r := range rows {
		for j, v := range u(r.c) {
			if v > 0 && s[j] > 0 {
				lb += r.w / total * v * math.Pow(math.Abs(a[j]/s[j]-r.c), o.Norm)
			}
		}
	}
	return math.Pow(bin, 1/o.Norm), math.Pow(lb, 1/o.Norm)
}

// plainSelective fills in auroc and fpr95, by pairs and by thresholds.
func plainSelective(rows []plainRow, out map[string]float64) {
	var p, q, wins float64
	for _, r := range rows {
		p += r.w * num(r.a)
		q += r.w * num(!r.a)
		for _, s := range rows {
			if r.a && !s.a {
				wins += r.w * s.w * (num(r.csf > s.csf) + num(r.csf == s.csf)/2)
			}
		}
	}
	out["auroc"], out["fpr95"] = wins/p/q, math.NaN()
	if p == 0 || q == 0 {
		out["auroc"] = math.NaN()
		return
	}
	for _, t := range rows {
		var tp, fp float64
		for _, r := range rows {
			if r.csf >= t.csf {
				tp += r.w * num(r.a)
				fp += r.w * num(!r.a)
			}
		}
		if tp/p >= .95-1e-13 && !(fp/q >= out["fpr95"]) {
			out["fpr95"] = fp / q
		}
	}
}

// plainAURC is the mean over k = 1..n of the error rate among the k rows of highest score, ties in the mean of all
// their orders, of rows that stand for w rows, w whole; and less that of the best order.
func plainAURC(rows []plainRow) (aurc, eaurc float64) {
	area := func(score func(r plainRow) float64) float64 {
		order := append([]plainRow(nil), rows...)
		sort.SliceStable(order, func(i, j int) bool { return score(order[i]) > score(order[j]) })
		var sum, seen, wrong float64
		for i := 0; i < len(order); {
			var w, e float64
			j := i
			for ; j < len(order) && score(order[j]) == score(order[i]); j++ {
				w += order[j].w
				e += order[j].w * num(!order[j].a)
			}
			for k := 1.0; k <= w; k++ {
				sum += (wrong + k*e/w) / (seen + k)
			}
			seen, wrong, i = seen+w, wrong+e, j
		}
		return sum / seen
	}
	aurc = area(func(r plainRow) float64 { return r.csf })
	return aurc, aurc - area(func(r plainRow) float64 { return num(r.a) })
}
