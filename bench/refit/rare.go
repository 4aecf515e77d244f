package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// Streams of the set rare: two classes, few positives. There is no such data set among the shared ones, so they are
// drawn: log-odds of a positive that are normal about ln(share/(1 - share)) - .9, on held-out streams Student's with
// four degrees of freedom about -1.1 of it. Labels are drawn from them; what the model says is wrong as its kind says.
var (
	rareShares = []int{50, 200, 500, 1000, 2000} // one positive in so many
	rareSeeds  = [2][]uint64{{1, 2}, {3, 4}}
	rareKinds  = []struct {
		name string
		says func(odds float64) float64
	}{
		{"logits × 2", func(z float64) float64 { return 2 * z }},
		{"logits × .6", func(z float64) float64 { return .6 * z }},
		{"odds of positives × 4", func(z float64) float64 { return z + math.Log(4) }},
		{"calibrated", func(z float64) float64 { return z }},
	}
)

const rareRows = 60_000

// rareStream is a stream of the set rare, and the NLL of what is true.
func rareStream(kind, share int, seed uint64, unseen bool) (*stream, float64) {
	r := rand.New(rand.NewPCG(seed, uint64(share)))
	tails := distuv.StudentsT{Sigma: 1, Nu: 4, Src: r}
	name, best := fmt.Sprintf("%s: 1 in %d, seed %d", rareKinds[kind].name, share, seed), 0.0
	s := &stream{name: name, rare: true, k: 2}
	for range rareRows {
		z := -math.Log(float64(share-1)) - .9 + 1.3*r.NormFloat64()
		if unseen {
			z = -math.Log(float64(share-1)) - 1.1 + tails.Rand()
		}
		y := step(r.Float64() < 1/(1+math.Exp(-z)))
		half := float32(rareKinds[kind].says(z) / 2)
		s.z, s.labels = append(s.z, -half, half), append(s.labels, int32(y))
		best += math.Log1p(math.Exp(z*float64(1-2*y))) / rareRows
	}
	return s, best
}

// rareResult is the mean NLL of a stream: what is true, the model, plumbline without and with following, and the rivals
// that fit a temperature each 1,000 and each 2,000 rows.
type rareResult struct {
	kind, share     int
	nll             [6]float64
	published, hurt int
	positive        predicted
}

// predicted is what the rows predicted positive were told of the positive, and their NLL.
type predicted struct {
	rows, right, told, nll [2]float64 // by what was published alone, and with refit.follow
}

func (p *predicted) add(i int, told float64, right bool, nll float64) {
	p.rows[i]++
	p.right[i] += float64(step(right))
	p.told[i] += told
	p.nll[i] += nll
}

var rarePolicies = []string{"what is true", "the model", "plumbline", "with `refit.follow`",
	"temperature every 1,000 rows", "temperature every 2,000 rows"}

func measureRare(o options, unseen bool) ([]rareResult, error) {
	type one struct {
		kind, share int
		seed        uint64
	}
	var all []one
	for kind := range rareKinds {
		for _, share := range rareShares {
			for _, seed := range rareSeeds[step(unseen)] {
				all = append(all, one{kind, share, seed})
			}
		}
	}
	return eachOf(o, all, func(x one) (rareResult, error) {
		s, best := rareStream(x.kind, x.share, x.seed, unseen)
		out := rareResult{kind: x.kind, share: x.share}
		ours, err := plumbline(s, taskConfig())
		if err != nil {
			return out, err
		}
		policies := [][]change{nil, ours.published, ours.followed}
		for _, every := range []int{1000, 2000} {
			c, err := everyRows(s, every)
			if err != nil {
				return out, err
			}
			policies = append(policies, c)
		}
		out.nll[0] = best
		for i, c := range policies {
			_, _, nll := servedRows(s, c)
			out.nll[1+i] = mean1(nll)
		}
		for i, c := range [][]change{ours.published, ours.followed} {
			conf, hit, nll := servedRows(s, c)
			for j := range conf {
				if (s.labels[j] == 1) == hit[j] {
					out.positive.add(i, conf[j], hit[j], nll[j])
				}
			}
		}
		for _, v := range judge(s, ours.published, dayRows, byNLL) {
			out.published, out.hurt = out.published+1, out.hurt+step(v.hurt())
		}
		return out, nil
	})
}

func renderRare(title string, all []rareResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| mean NLL × 1,000, few positives, %s | one in | %s | published, and of these hurt |\n"+
		"|---|---|%s---|\n", title, strings.Join(rarePolicies, " | "), strings.Repeat("---|", len(rarePolicies)))
	for kind := range rareKinds {
		for _, share := range rareShares {
			var nll [6]float64
			n, published, hurt := 0.0, 0, 0
			for _, r := range all {
				if r.kind == kind && r.share == share {
					for i, v := range r.nll {
						nll[i] += v
					}
					n, published, hurt = n+1, published+r.published, hurt+r.hurt
				}
			}
			fmt.Fprintf(&b, "| %s | %d |", rareKinds[kind].name, share)
			for _, v := range nll {
				fmt.Fprintf(&b, " %.2f |", 1000*v/n)
			}
			fmt.Fprintf(&b, " %d, %d |\n", published, hurt)
		}
	}
	b.WriteString(renderPredicted(title, all))
	return b.String()
}

// renderPredicted is the table of the rows that are predicted positive, by kind of stream.
func renderPredicted(title string, all []rareResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| rows predicted positive, %s | rows | right | told | with `refit.follow` | NLL | "+
		"with `refit.follow` |\n|---|---|---|---|---|---|---|\n", title)
	for kind := range rareKinds {
		var p predicted
		for _, r := range all {
			if r.kind == kind {
				for i := range p.rows {
					p.rows[i], p.right[i] = p.rows[i]+r.positive.rows[i], p.right[i]+r.positive.right[i]
					p.told[i], p.nll[i] = p.told[i]+r.positive.told[i], p.nll[i]+r.positive.nll[i]
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.3f | %.3f | %.3f | %.3f | %.3f |\n", rareKinds[kind].name, p.rows[0],
			p.right[0]/p.rows[0], p.told[0]/p.rows[0], p.told[1]/p.rows[1], p.nll[0]/p.rows[0], p.nll[1]/p.rows[1])
	}
	return b.String()
}
