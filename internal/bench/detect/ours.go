package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/calib/detect"
)

// paneRows is the number of rows of a pane.
const paneRows = 100

const bins = detect.DefaultBins

// levels are 1/α at which the first crossing is noted, in one run: the sums are not reset.
var levels = []float64{1e2, 1e3, 1e4, 1e5, 1e6, 3.15e6}

// test is one detector under measurement.
type test struct {
	name string
	spec detect.Spec
	// learn is the number of rows at the start that make the reference curve, 0 for none. The test begins after them.
	learn int
}

// outcome is where a run of a test first crossed each level, in rows; -1 for never. For the joint alarm too.
type outcome [][]int // by test and level

// runs measures all tests on a stream, every run once, on all cores.
func runs(s *stream, tests []test, n int) ([]outcome, error) {
	out := make([]outcome, n)
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buffer []row
			fresh := detectors(tests)
			for i := range next {
				buffer = s.rows(i, buffer)
				out[i], errs[i] = observe(buffer, tests, fresh)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s, run %d: %w", s.name, i, err)
		}
	}
	return out, nil
}

// never is a level that no sum reaches: detectors that are not reset.
const never = 1e-300

func detectors(tests []test) []*detect.Detector {
	var out []*detect.Detector
	for _, t := range tests {
		t.spec.Alpha = never
		d, err := detect.New(t.spec)
		if err != nil {
			panic("detection bench: " + err.Error())
		}
		out = append(out, d)
	}
	return out
}

// observe feeds one run to every test, and notes the first crossings.
func observe(rows []row, tests []test, prototypes []*detect.Detector) (outcome, error) {
	out := make(outcome, len(tests))
	ds := make([]*detect.Detector, len(tests))
	for k, t := range tests {
		out[k] = make([]int, len(levels))
		for l := range out[k] {
			out[k][l] = -1
		}
		if t.learn == 0 {
			ds[k] = prototypes[k].Fresh()
			continue
		}
		t.spec.Reference = curve(rows[:t.learn])
		ds[k] = detectors([]test{t})[0]
	}
	pane := make(detect.Pane, bins)
	for i := 0; i+paneRows <= len(rows); i += paneRows {
		sum(pane, rows[i:i+paneRows])
		for k, d := range ds {
			if i < tests[k].learn {
				continue
			}
			if _, err := d.Observe(int64(i/paneRows), pane); err != nil {
				return nil, err
			}
			e := d.LogE()
			for l, level := range levels {
				if out[k][l] < 0 && e >= math.Log(level) {
					out[k][l] = i + paneRows
				}
			}
		}
	}
	return out, nil
}

// sum makes the pane of rows.
func sum(p detect.Pane, rows []row) {
	clear(p)
	for _, r := range rows {
		b := &p[binOf(r.c)]
		if r.right {
			b.N1++
			b.C1 += r.c
		} else {
			b.N0++
			b.C0 += r.c
		}
	}
}

func binOf(c float64) int { return max(0, min(bins-1, int(math.Ceil(c*bins))-1)) }

// curve measures the reference curve on rows. Its own error is inside the tolerance: .009 on average in the sum of
// NullECE for 10,000 rows (docs/math.md).
func curve(rows []row) *detect.Reference {
	p := make(detect.Pane, bins)
	sum(p, rows)
	r := &detect.Reference{Bias: make([]float64, bins)}
	for j, b := range p {
		if n := b.N(); n > 0 {
			r.Bias[j] = (b.N1 - b.C1 - b.C0) / n
		}
	}
	return r
}
