package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/calib/detect"
)

const bins = detect.DefaultBins

// levels are 1/α at which the first crossing is noted, in one run: the sums are not reset. Every second one is twice the
// one before, for two tests that share an α.
var levels = []float64{1e3, 2e3, 1e4, 2e4, 1e5, 2e5, 3.15e6, 6.3e6}

// test is one detector under measurement.
type test struct {
	name string
	spec detect.Spec
	// learn is the number of rows at the start that make the reference curve, 0 for none. The test begins after them.
	learn int
	pane  int // rows
}

// outcome is where a run first crossed each level, in rows, by test and level; -1 for never.
type outcome [][]int

// runs measures all tests on a stream, every run once, on all cores.
func runs(s *stream, tests []test, n int) ([][][]int, error) {
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
	return byTest(out, len(tests)), nil
}

// byTest turns what is by run, test and level to test, level and run.
func byTest(out []outcome, tests int) [][][]int {
	by := make([][][]int, tests)
	for k := range by {
		by[k] = make([][]int, len(levels))
		for l := range by[k] {
			for _, o := range out {
				by[k][l] = append(by[k][l], o[k][l])
			}
		}
	}
	return by
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
	for k, t := range tests {
		d := prototypes[k]
		if t.learn > 0 {
			t.learn = min(t.learn, len(rows)/5)
			t.spec.Reference = curve(rows[:t.learn])
			d = detectors([]test{t})[0]
		}
		var err error
		if out[k], err = crossings(d.Fresh(), rows, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func crossings(d *detect.Detector, rows []row, t test) ([]int, error) {
	first := make([]int, len(levels))
	for l := range first {
		first[l] = -1
	}
	pane := make(detect.Pane, bins)
	for i, next := t.learn, 0; i+t.pane <= len(rows) && next < len(levels); i += t.pane {
		sum(pane, rows[i:i+t.pane])
		if _, err := d.Observe(int64(i/t.pane), pane); err != nil {
			return nil, err
		}
		for e := d.LogE(); next < len(levels) && e >= math.Log(levels[next]); next++ {
			first[next] = i + t.pane
		}
	}
	return first, nil
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
