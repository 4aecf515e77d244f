package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/bench/student"
)

// results are all trials, and what is read from them.
type results map[key]trial

// pick returns by seed the point of the lowest validation NLL, plain or after a temperature; a seed of which a point is
// missing or failed altogether is left out.
func (r results) pick(setting string, m method, tempered bool) map[uint64]trial {
	out := map[uint64]trial{}
	for seed := range uint64(seeds) {
		best, whole := trial{}, true
		lowest := math.Inf(1)
		for point := range max(1, len(m.grid)) {
			t, ok := r[key{setting, m.name, seed, point}]
			whole = whole && ok
			if v := t.of(tempered).ValidNLL; ok && t.Error == "" && v < lowest {
				best, lowest = t, v
			}
		}
		if whole && !math.IsInf(lowest, 1) {
			out[seed] = best
		}
	}
	return out
}

func (t trial) of(tempered bool) outcome {
	if tempered {
		return t.Tempered
	}
	return t.Plain
}

// measurement is a column of the tables: how it is read and shown, and whether more is better.
type measurement struct {
	title, format string
	of            func(o outcome) float64
	more          bool
}

var (
	accuracy = measurement{"accuracy", "%.2f", func(o outcome) float64 { return 100 * o.Accuracy }, true}
	ece      = measurement{"ECE", "%.2f", func(o outcome) float64 { return 100 * o.ECE }, false}
	floor    = measurement{"if calibrated", "%.2f", func(o outcome) float64 { return 100 * o.Floor }, false}
	nll      = measurement{"NLL", "%.4f", func(o outcome) float64 { return o.NLL }, false}
	measures = []measurement{
		accuracy, ece, floor,
		{"equal mass", "%.2f", func(o outcome) float64 { return 100 * o.ACE }, false},
		{"class-wise", "%.3f", func(o outcome) float64 { return 100 * o.CWECE }, false},
		nll,
		{"AURC × 1000", "%.1f", func(o outcome) float64 { return 1000 * o.AURC }, false},
	}
)

// values are a measure by seed.
func (c measurement) values(trials map[uint64]trial, tempered bool) map[uint64]float64 {
	out := map[uint64]float64{}
	for seed, t := range trials {
		out[seed] = c.of(t.of(tempered))
	}
	return out
}

// less are the differences on the seeds that both have.
func less(a, b map[uint64]float64) []float64 {
	var out []float64
	for seed := range uint64(seeds) {
		x, ok := a[seed]
		y, ok2 := b[seed]
		if ok && ok2 {
			out = append(out, x-y)
		}
	}
	return out
}

// list are values in the order of their seeds.
func list(a map[uint64]float64) []float64 {
	return less(a, map[uint64]float64{0: 0, 1: 0, 2: 0, 3: 0, 4: 0})
}

// sharedRows is the ratio of tested to fitted rows of table A; that of the others is of the same size.
const sharedRows = 1.0

// cell shows a measure with its interval over the seeds: bold where it is better than the reference beyond the interval
// of their difference, in italics where worse.
func (c measurement) cell(trials map[uint64]trial, tempered bool, base map[uint64]float64) string {
	own := c.values(trials, tempered)
	if len(own) == 0 {
		return "–"
	}
	mean, h := student.Interval(list(own), 0)
	text := fmt.Sprintf(c.format+" ±"+c.format, mean, h)
	if math.IsNaN(h) {
		text = fmt.Sprintf(c.format, mean)
	}
	if len(own) < seeds {
		text += fmt.Sprintf(" (%d)", len(own))
	}
	return c.mark(text, less(own, base))
}

// mark says by its type whether a difference is one.
func (c measurement) mark(text string, diff []float64) string {
	d, h := student.Interval(diff, sharedRows)
	if c.title == floor.title || len(diff) < 2 || math.Abs(d) <= h || strings.Trim(fmt.Sprintf(c.format, d),
		"-0.") == "" {
		return text
	}
	if d > 0 == c.more {
		return "**" + text + "**"
	}
	return "*" + text + "*"
}
