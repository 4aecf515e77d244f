package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/section"
)

// A regime is a stream of which only the accuracy matters. level draws a stream and returns the accuracy by row; it is
// stationary up to row regimeChange, from which fall is taken off every row.
type regime struct {
	name  string
	fall  float64
	level func(rng *rand.Rand) func(row int) float64
}

const (
	regimeRuns   = 50
	regimeRows   = 100_000
	regimeChange = 20_000
	regimeLearn  = 10_000
	regimePane   = 100
	// heldRegimes is the first run of those that nothing was chosen on.
	heldRegimes = 1000
)

// blocks are runs of so many rows at one level each, from a random row of the first one.
func blocks(length int, draw func(rng *rand.Rand, k int) float64) func(*rand.Rand) func(int) float64 {
	return func(rng *rand.Rand) func(int) float64 {
		from := rng.IntN(length)
		var levels []float64
		return func(row int) float64 {
			k := (row + from) / length
			for len(levels) <= k {
				levels = append(levels, draw(rng, len(levels)))
			}
			return levels[k]
		}
	}
}

func easyHard(_ *rand.Rand, k int) float64 { return [...]float64{.93, .75}[k%2] }

func anyOrder(rng *rand.Rand, _ int) float64 { return [...]float64{.93, .75}[rng.IntN(2)] }

// spread is σ(N(1.66, .5²)): .84 on average, .68 to .93 in nine of ten blocks.
func spread(rng *rand.Rand, _ int) float64 { return 1 / (1 + math.Exp(-1.66-.5*rng.NormFloat64())) }

func steady(level float64) func(*rand.Rand) func(int) float64 {
	return func(*rand.Rand) func(int) float64 { return func(int) float64 { return level } }
}

func waves(period float64) func(*rand.Rand) func(int) float64 {
	return func(rng *rand.Rand) func(int) float64 {
		phase := rng.Float64()
		return func(row int) float64 { return .84 + .09*math.Sin(2*math.Pi*(phase+float64(row)/period)) }
	}
}

var regimes = []regime{
	{"blocks of 2,000, easy and hard in turns", 0, blocks(2000, easyHard)},
	{"blocks of 500, easy and hard in turns", 0, blocks(500, easyHard)},
	{"blocks of 4,000, easy and hard in turns", 0, blocks(4000, easyHard)},
	{"waves of ±.09, 8,000 rows each", 0, waves(8000)},
	{"blocks of 2,000, easy or hard at random", 0, blocks(2000, anyOrder)},
	{"blocks of 2,000, each of a level of its own", 0, blocks(2000, spread)},
	{"every row .84", 0, steady(.84)},
	{"every row .84, then .05 less", .05, steady(.84)},
	{"every row .84, then .10 less", .1, steady(.84)},
	{"every row .84, then .20 less", .2, steady(.84)},
	{"every row .97, then .05 less", .05, steady(.97)},
	{"blocks of 2,000 in turns, then .10 less", .1, blocks(2000, easyHard)},
	{"blocks of 2,000 in turns, then .20 less", .2, blocks(2000, easyHard)},
}

// stretchRows are those of a stretch of the reference, as in the stream (operators/model/alarm).
const stretchRows = regimeLearn / 40

// firstFall gives one run to the alarm on accuracy and returns the row of the first alarm, -1 for none; plain is
// without the dip of the reference.
func (g regime) firstFall(run int, plain bool) (int, error) {
	rng := rand.New(rand.NewPCG(uint64(run), 17))
	level := g.level(rng)
	learnt, stretches := make(detect.Pane, bins), []detect.Stretch{{}}
	var d *detect.Detector
	for row := 0; row < regimeRows; row += regimePane {
		var right float64
		for i := row; i < row+regimePane; i++ {
			p := level(i)
			if i >= regimeChange {
				p -= g.fall
			}
			if rng.Float64() < p {
				right++
			}
		}
		pane := make(detect.Pane, bins)
		b := &pane[bins-1]
		b.N1, b.C1, b.N0, b.C0 = right, right, regimePane-right, regimePane-right
		if row < regimeLearn {
			sumPane(learnt, pane)
			if stretches[len(stretches)-1].N >= stretchRows {
				stretches = append(stretches, detect.Stretch{})
			}
			s := &stretches[len(stretches)-1]
			s.N, s.Right = s.N+regimePane, s.Right+right
			continue
		}
		if d == nil {
			ref, err := detect.ReferenceCurve(learnt, 1)
			if err != nil {
				return 0, err
			}
			if !plain {
				ref.AccuracyDip = detect.Dip(stretches)
			}
			// The share of accuracy among the three signals of the stream.
			d, err = detect.New(detect.Spec{Null: detect.NullAccuracy, Alpha: 1. / detect.PanesPerYear10 / 3,
				Reference: ref})
			if err != nil {
				return 0, err
			}
		}
		fired, err := d.Observe(int64(row), pane)
		if err != nil {
			return 0, err
		}
		if fired != nil {
			return row + regimePane, nil
		}
	}
	return -1, nil
}

func sumPane(dst, p detect.Pane) {
	for j, b := range p {
		d := &dst[j]
		d.N1, d.C1, d.N0, d.C0 = d.N1+b.N1, d.C1+b.C1, d.N0+b.N0, d.C0+b.C0
	}
}

// regimeTable measures the alarm on accuracy on all regimes.
func regimeTable(o options) error {
	var rows [][]string
	for _, g := range regimes {
		cells := []string{g.name}
		for _, from := range []int{0, heldRegimes} {
			for _, plain := range []bool{true, false} {
				text, err := g.measure(from, plain)
				if err != nil {
					return fmt.Errorf("%s: %w", g.name, err)
				}
				cells = append(cells, text)
			}
		}
		rows = append(rows, cells)
	}
	var b strings.Builder
	table(&b, fmt.Sprintf("**A fall of accuracy, or hard rows that come and go**: `accuracy-fall` at its default (a "+
		"third of one false alarm in 3.15 million panes, reference of %d rows) on %d streams of %d rows each, panes "+
		"of %d. Blocks are easy (.93) or hard (.75), from a random row of a block on. Where nothing falls: the share "+
		"of the streams in which it fires. Where every row falls by as much at row %d: median rows to the alarm after "+
		"it. Without dip: against the mean of the reference alone. Held out: runs from %d on, on which nothing was "+
		"chosen.", regimeLearn, regimeRuns, regimeRows, regimePane, regimeChange, heldRegimes),
		[]string{"stream", "without dip", "as shipped", "without dip, held out", "as shipped, held out"}, rows)
	fmt.Print(b.String())
	if o.docs == "" {
		return nil
	}
	return section.Replace(o.docs, "regimes", b.String())
}

func (g regime) measure(from int, plain bool) (string, error) {
	var first []int
	for run := range regimeRuns {
		at, err := g.firstFall(from+run, plain)
		if err != nil {
			return "", err
		}
		first = append(first, at)
	}
	if g.fall == 0 {
		fired := regimeRuns
		for _, at := range first {
			if at < 0 {
				fired--
			}
		}
		return fmt.Sprintf("%d of %d fire", fired, regimeRuns), nil
	}
	slices.Sort(first)
	return summarise(first, regimeChange).rows() + " rows", nil
}
