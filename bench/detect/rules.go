package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/internal/section"
)

// What "equal false alarms" means depends on the streams on which nobody may alarm. Here everybody is tuned on each of
// two of them, the fixed-window rule included, and measured on runs that nothing was chosen on.

// profile are calibrated rows of which the logits are divided by scale.
func (s *scores) profile(scale float64) pool {
	p := s.rows("resnet20", scale)
	return pool{c: p.c, p: p.c}
}

// nulls are streams of a profile inside the tolerance of .02, on which detectors are tuned.
func nulls(p pool, n int) []stream {
	mk := func(name string, bias float64, every int) stream {
		up, down := p.biased(func(float64) float64 { return bias }), p.biased(func(float64) float64 { return -bias })
		return stream{group: groupCalm, name: name, n: n, bounded: true, draw: func(rng *rand.Rand, i int) drawn {
			if i/every%2 == 0 {
				return up.row(rng)
			}
			return down.row(rng)
		}}
	}
	return []stream{mk("±.018 in turns of 2,000 rows", .018, 2000), mk("±.02 in turns of 7,000 rows", .02, 7000)}
}

const (
	tuningRuns = 100
	ruleRuns   = 20
	// heldRuns is the first run of those on which delays are measured; experts were chosen on runs below 200.
	heldRuns = 2000
	// windowRows and windowStep are of the fixed-window rule: the ECE of the last rows, at every so many.
	windowRows = 1000
	windowStep = 20
)

// tuned is a detector at one setting: it returns the first alarm after the change, -1 for none, and whether one came
// before.
type tuned struct {
	name, setting string
	first         func(rows []drawn, change int) (first int, early bool, err error)
}

// windowed calls f with the ECE of the last windowRows rows at every step, until it returns false.
func windowed(rows []drawn, f func(row int, ece float64) bool) {
	var n, gap [bins]float64
	add := func(r drawn, w float64) {
		j := binOf(r.c)
		n[j] += w
		gap[j] -= w * r.c
		if r.right {
			gap[j] += w
		}
	}
	for i, r := range rows {
		add(r, 1)
		if i >= windowRows {
			add(rows[i-windowRows], -1)
		}
		if i+1 < windowRows || (i+1)%windowStep != 0 {
			continue
		}
		var ece float64
		for _, g := range gap {
			ece += math.Abs(g) / windowRows
		}
		if !f(i+1, ece) {
			return
		}
	}
}

// windowRule is the fixed-window rule at the least threshold with alarms in at most 1 % of the runs of the null.
func windowRule(null *stream) tuned {
	var most []float64
	var buffer []drawn
	for run := range tuningRuns {
		buffer = null.rows(run, buffer)
		largest := 0.
		windowed(buffer, func(_ int, ece float64) bool {
			largest = max(largest, ece)
			return true
		})
		most = append(most, largest)
	}
	slices.Sort(most)
	return windowAt(most[tuningRuns-1-int(calmest*tuningRuns)])
}

func windowAt(threshold float64) tuned {
	return tuned{"ECE of 1,000 rows", fmt.Sprintf("> %.4f", threshold),
		func(rows []drawn, change int) (int, bool, error) {
			first, early := -1, false
			windowed(rows, func(row int, ece float64) bool {
				if ece > threshold && row > change {
					first = row
				}
				early = early || ece > threshold && row <= change
				return first < 0
			})
			return first, early, nil
		}}
}

// riverRule is a peer at its most sensitive setting that is calm on the null; nil where none is.
func riverRule(k *peerKind, null *stream) *tuned {
	var buffer []drawn
	for _, v := range k.values {
		alarms := 0
		for run := 0; run < tuningRuns && float64(alarms) <= calmest*tuningRuns; run++ {
			buffer = null.rows(run, buffer)
			if at, _ := k.firstAlarm(v, buffer, 0); at > 0 {
				alarms++
			}
		}
		if float64(alarms) <= calmest*tuningRuns {
			return &tuned{k.name, k.setting(v), func(rows []drawn, change int) (int, bool, error) {
				first, early := k.firstAlarm(v, rows, change)
				return first, early, nil
			}}
		}
	}
	return nil
}

const ownRule = "alarm + accuracy" + shortPanes

// ownParts are the tests that ownRule consists of, by their place in tests.
func ownParts() (list []test) {
	for _, p := range joint[ownRule] {
		list = append(list, tests[slices.IndexFunc(tests, func(t test) bool { return t.name == p.name })])
	}
	return list
}

// ownFirst returns the first alarm of ownRule by level, of a run.
func ownFirst(rows []drawn, s *stream) (map[float64]int, error) {
	parts := ownParts()
	o, err := observe(rows, s, parts, detectors(parts))
	if err != nil {
		return nil, err
	}
	out := map[float64]int{}
	for _, level := range levels {
		first := -1
		for k, p := range joint[ownRule] {
			l := slices.Index(levels, level*p.of)
			if l < 0 {
				first = 0
				break
			}
			if at := o[k][l]; at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
		if first != 0 { // else not all of its tests have the level
			out[level] = first
		}
	}
	return out, nil
}

// ownTuned is plumbline at the least level that is calm on the null.
func ownTuned(null *stream) (tuned, error) {
	alarms := map[float64]int{}
	var buffer []drawn
	for run := range tuningRuns {
		buffer = null.rows(run, buffer)
		first, err := ownFirst(buffer, null)
		if err != nil {
			return tuned{}, err
		}
		for level, at := range first {
			if alarms[level] += 0; at > 0 {
				alarms[level]++
			}
		}
	}
	for _, level := range levels {
		if n, ok := alarms[level]; ok && float64(n) <= calmest*tuningRuns {
			return tuned{"plumbline", "1/α = " + short(level), func(rows []drawn, change int) (int, bool, error) {
				s := &stream{n: len(rows), change: change}
				first, err := ownFirst(rows, s)
				if at := first[level]; at > change {
					return at, false, err
				}
				return -1, first[level] > 0, err
			}}, nil
		}
	}
	return tuned{}, fmt.Errorf("%s: no level is calm", null.name)
}

// everybody tunes all detectors on a null.
func everybody(null *stream) ([]tuned, error) {
	own, err := ownTuned(null)
	if err != nil {
		return nil, err
	}
	all := []tuned{own, windowRule(null)}
	for i := range peerKinds {
		if r := riverRule(&peerKinds[i], null); r != nil {
			all = append(all, *r)
		}
	}
	return all, nil
}

// wholeChanges are the changes of all rows; errors in a part of the rows have tables of their own.
func wholeChanges(s *scores) (out []stream) {
	for _, d := range delays(s) {
		if d.every == 0 && !strings.Contains(d.name, "slice") {
			out = append(out, d)
		}
	}
	return out
}

// ruleTable measures the delays of everybody after tuning on each null, and what tuned thresholds do elsewhere.
func ruleTable(o options) error {
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := oracleTable(&b, s); err != nil {
		return err
	}
	for _, null := range nulls(s.calibrated(), o.n) {
		all, err := everybody(&null)
		if err != nil {
			return err
		}
		if err := delaysAfter(&b, null.name, all, wholeChanges(s)); err != nil {
			return err
		}
	}
	if err := elsewhere(&b, s, o.n); err != nil {
		return err
	}
	fmt.Print(b.String())
	if o.docs == "" {
		return nil
	}
	return section.Replace(o.docs, "rules", b.String())
}

// delaysAfter prints the median delays of detectors tuned on a null, and in how many changes plumbline is good.
func delaysAfter(b *strings.Builder, null string, all []tuned, changes []stream) error {
	head := []string{"change"}
	for _, d := range all {
		head = append(head, d.name+", "+d.setting)
	}
	var rows [][]string
	good, total := 0, 0
	for i := range changes {
		c := &changes[i]
		row := []string{c.name}
		own, best := math.MaxInt, math.MaxInt
		for k, d := range all {
			sum, err := d.delay(c)
			if err != nil {
				return err
			}
			switch {
			case sum.median < 0:
			case k == 0:
				own = sum.median
			default:
				best = min(best, sum.median)
			}
			row = append(row, sum.rows())
		}
		if min(own, best) < math.MaxInt {
			total++
			if float64(own) <= 1.2*float64(best) {
				good++
				row[1] = "**" + row[1] + "**"
			}
		}
		rows = append(rows, row)
	}
	table(b, fmt.Sprintf("**Tuned on %s**: everybody at the most sensitive setting with alarms in at most 1 of %d "+
		"runs of this stream. Median rows from the change to the alarm on %d runs from %d on, on which nothing was "+
		"chosen. "+
		"Plumbline is first or within 1.2× of the best in %d of %d (bold).", null, tuningRuns, ruleRuns, heldRuns,
		good, total), head, rows)
	return nil
}

// delay summarises the held-out runs of a change.
func (d tuned) delay(c *stream) (summary, error) {
	var first []int
	early := 0
	var buffer []drawn
	for run := range ruleRuns {
		buffer = c.rows(heldRuns+run, buffer)
		at, before, err := d.first(buffer, c.change)
		if err != nil {
			return summary{}, err
		}
		if before {
			early++
		}
		first = append(first, at)
	}
	sum := summarise(first, c.change)
	sum.early = float64(early) / ruleRuns
	return sum, nil
}

// elsewhere tunes everybody on waves of a model that is sure of its answers, and prints in how many calibrated runs of
// other profiles they alarm.
func elsewhere(b *strings.Builder, s *scores, n int) error {
	const runs, sharp = 30, .5
	all, err := everybody(&nulls(s.profile(sharp), n)[0])
	if err != nil {
		return err
	}
	var rows [][]string
	for _, scale := range []float64{sharp, 1, 2, 4} {
		p := s.profile(scale)
		var mean float64
		for _, c := range p.c {
			mean += c / float64(len(p.c))
		}
		calm := stream{group: groupCalm, name: fmt.Sprintf("calibrated, logits / %g", scale), n: min(n, 30_000),
			draw: always(p)}
		row := []string{fmt.Sprintf("logits divided by %g: mean confidence %.2f", scale, mean)}
		for _, d := range all {
			alarms := 0
			var buffer []drawn
			for run := range runs {
				buffer = calm.rows(heldRuns+run, buffer)
				at, _, err := d.first(buffer, 0)
				if err != nil {
					return err
				}
				if at > 0 {
					alarms++
				}
			}
			row = append(row, fmt.Sprintf("%d of %d", alarms, runs))
		}
		rows = append(rows, row)
	}
	head := []string{"calibrated rows"}
	for _, d := range all {
		head = append(head, d.name+", "+d.setting)
	}
	table(b, fmt.Sprintf("**Thresholds elsewhere**: everybody tuned on ±.018 in turns of 2,000 rows of a surer model "+
		"(logits divided by %g), then run on calibrated streams of other confidences: runs of %d rows that ever alarm.",
		sharp, min(n, 30_000)), head, rows)
	return nil
}
