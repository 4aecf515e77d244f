package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// oracleRuns is how many runs the alarm beside the oracle has: a severe change is found in two panes or three, so that
// few runs leave the median to chance.
const oracleRuns = 200

// yearly is the default 1/α of the alarm on calibration, both of its tests together.
const yearly = 3.15e6

// hardChanges are changes that default settings find late, beside those of the other tables: small ones, sharpened and
// flattened confidences, and one predicted class that is right .6 times as often.
func hardChanges(s *scores) []change {
	p := s.calibrated()
	mk := func(name string, q pool) change {
		return change{stream{group: groupDelay, name: name, n: changeAt + delayLimit, change: changeAt,
			draw: after(p, q)}, q}
	}
	out := []change{
		mk("temperature ×0.6", s.distorted(.6)),
		mk("temperature ×1.5", s.distorted(1.5)),
		mk("all off by 0.03", p.biased(func(float64) float64 { return -.03 })),
		mk("all off by 0.05", p.biased(func(float64) float64 { return -.05 })),
		mk("all off by 0.10", p.biased(func(float64) float64 { return -.1 })),
		mk("one predicted class, right .6 times as often", s.oneClass(3, .6)),
	}
	for _, c := range corruptions {
		out = append(out, mk(c, s.rows("resnet20_"+c, 1)))
	}
	return out
}

// change is a stream with the rows after its change.
type change struct {
	stream
	after pool
}

// oneClass returns calibrated rows, those with one predicted class right less often.
func (s *scores) oneClass(class int, times float64) pool {
	p := s.calibrated()
	q := pool{c: p.c, p: slices.Clone(p.p)}
	z := s.z["resnet20"]
	for i := range s.labels {
		if _, top := confidence(z[i*classes:(i+1)*classes], s.t); top == class {
			q.p[i] *= times
		}
	}
	return q
}

// rowsNeeded returns about how many rows a test with the same null and α needs that knows the row of the change and the
// accuracy by bin after it: ln(2/α) over the largest mean log of a bet on a row. It is the better of H0-ECE, with
// the best of its stakes and directions g_j = clip(k·b_j/v_j, -1, 1), and H0-BIN; each has half of α.
func rowsNeeded(q pool) float64 {
	var rows, right, sumC [bins]float64
	for i, c := range q.c {
		j := binOf(c)
		rows[j]++
		sumC[j] += c
		if q.p != nil {
			right[j] += q.p[i]
		} else if q.right[i] {
			right[j]++
		}
	}
	n := float64(len(q.c))
	growthBin := 0.
	var b, v [bins]float64
	for j := range rows {
		if rows[j] == 0 {
			continue
		}
		rate, conf := right[j]/rows[j], sumC[j]/rows[j]
		b[j], v[j] = rate-conf, max(rate*(1-rate), .005)
		if math.Abs(b[j]) > .05 {
			edge := min(.999, max(.001, conf+math.Copysign(.05, b[j])))
			growthBin += rows[j] / n * kl(rate, edge)
		}
	}
	growthECE := 0.
	for k := 1. / 64; k <= 64; k *= 2 {
		for theta := .02; theta < .89; theta += .03 {
			var growth float64
			for j := range rows {
				if rows[j] == 0 {
					continue
				}
				g := min(1, max(-1, k*b[j]/v[j]))
				rate, conf := right[j]/rows[j], sumC[j]/rows[j]
				win := rate*math.Log1p(theta*(g*(1-conf)-tolerance)) + (1-rate)*math.Log1p(theta*(-g*conf-tolerance))
				growth += rows[j] / n * win
			}
			growthECE = max(growthECE, growth)
		}
	}
	return math.Log(2*yearly) / max(growthECE, growthBin)
}

// oracleTable holds the default alarm against the oracle.
func oracleTable(b *strings.Builder, s *scores) error {
	var parts []test
	for _, name := range []string{"headline", "diagnosis"} {
		parts = append(parts, tests[slices.IndexFunc(tests, func(t test) bool { return t.name == name+shortPanes })])
	}
	fresh := detectors(parts)
	var rows [][]string
	within, known := 0, 0
	for _, c := range hardChanges(s) {
		var first []int
		var buffer []drawn
		for run := range oracleRuns {
			buffer = c.rows(heldRuns+run, buffer)
			o, err := observe(buffer, &c.stream, parts, fresh)
			if err != nil {
				return err
			}
			l := slices.Index(levels, 2*yearly)
			first = append(first, jointly([]int{o[0][l]}, []int{o[1][l]})[0])
		}
		need, sum := rowsNeeded(c.after), summarise(first, c.change)
		text, ratio := "never", ""
		if !math.IsInf(need, 0) {
			text = fmt.Sprintf("%.0f", need)
		}
		if need <= 20_000 {
			known++
			if sum.median >= 0 {
				r := float64(sum.median) / max(need, 20)
				ratio = fmt.Sprintf("%.2f", r)
				if r <= 1.4 {
					within++
				}
			}
		}
		rows = append(rows, []string{c.name, text, sum.rows(), ratio})
	}
	table(b, fmt.Sprintf("**Beside an oracle**: the default alarm (1/α = 3.15 million panes, panes of 20 rows) on %d "+
		"runs from %d on, on which nothing was chosen. The oracle has the same nulls and α, knows the row of the "+
		"change and the accuracy by bin after it; a pane is the least that it can need. Bar: at most 1.4 times its "+
		"rows where it needs 20,000 or fewer: met in %d of %d.", oracleRuns, heldRuns, within, known),
		[]string{"change", "oracle", "alarm", "ratio"}, rows)
	return nil
}
