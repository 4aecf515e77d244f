package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/calib/detect"
)

const bins = detect.DefaultBins

// levels are 1/α at which the first crossing is noted, in one run: the sums are not reset. Those that are reported of
// tests which share an α are there twice and four times as large, too.
var levels = []float64{1e3, 2e3, 4e3, 5e3, 1e4, 2e4, 3.5e4, 4e4, 5e4, 7e4, 8e4, 1e5, 1.4e5, 2e5, 2.8e5, 4e5, 5.6e5, 1e6,
	3.15e6, 6.3e6, 1.26e7}

// test is one detector under measurement.
type test struct {
	name string
	spec detect.Spec
	// learn is the number of rows at the start that make the reference curve, 0 for none. The test begins after them.
	learn int
	pane  int // rows
	// compared with other detectors at equal false alarms.
	compared bool
}

// outcome is where a run first crossed each level, in rows, by test and level; -1 for never.
type outcome [][]int

// runs measures all tests on the runs [from, to) of a stream, on all cores.
func runs(s *stream, tests []test, from, to int) ([][][]int, error) {
	n := to - from
	out := make([]outcome, n)
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buffer []drawn
			fresh := detectors(tests)
			for i := range next {
				buffer = s.rows(from+i, buffer)
				out[i], errs[i] = observe(buffer, s, tests, fresh)
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
			return nil, fmt.Errorf("%s, run %d: %w", s.name, from+i, err)
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
		if t.learn > 0 && t.spec.Reference == nil {
			out = append(out, nil) // made for every run
			continue
		}
		t.spec.Alpha = never
		d, err := detect.New(t.spec)
		if err != nil {
			panic("detection bench: " + err.Error())
		}
		out = append(out, d)
	}
	return out
}

// observe feeds one run to every test, and notes the first crossings. Of a stream of which each row stands for several,
// panes and the reference hold fewer rows, α is shared by as many keys, and crossings are rows of the whole again.
func observe(rows []drawn, s *stream, tests []test, prototypes []*detect.Detector) (outcome, error) {
	out := make(outcome, len(tests))
	sums := map[[2]int][]detect.Pane{} // by length and offset: tests share them
	for k, t := range tests {
		t.pane /= s.weight()
		d := prototypes[k]
		if t.learn > 0 {
			t.learn = min(t.learn/s.weight(), len(rows)/5)
			var err error
			if t.spec.Reference, err = curve(rows[:t.learn]); err != nil {
				return nil, err
			}
			t.spec.Reference.AccuracyDip = dip(rows[:t.learn])
			d = detectors([]test{t})[0]
		}
		from := t.learn % t.pane
		key := [2]int{t.pane, from}
		if sums[key] == nil {
			sums[key] = panes(rows[from:], t.pane)
		}
		var err error
		if out[k], err = crossings(d.Fresh(), sums[key][t.learn/t.pane:], s.weight()); err != nil {
			return nil, err
		}
		for l, at := range out[k] {
			if at >= 0 {
				out[k][l] = (t.learn + at*t.pane) * s.weight()
			}
		}
	}
	return out, nil
}

// crossings returns how many panes it took to each level, -1 for never.
func crossings(d *detect.Detector, panes []detect.Pane, every int) ([]int, error) {
	first := make([]int, len(levels))
	bounds := make([]float64, len(levels))
	for l := range first {
		first[l], bounds[l] = -1, math.Log(levels[l]*float64(every))
	}
	next := 0
	for i, p := range panes {
		if _, err := d.Observe(int64(i), p); err != nil {
			return nil, err
		}
		for e := d.LogE(); next < len(levels) && e >= bounds[next]; next++ {
			first[next] = i + 1
		}
		if next == len(levels) {
			break
		}
	}
	return first, nil
}

// panes returns the sums of every so many rows, without a rest that is shorter.
func panes(rows []drawn, size int) []detect.Pane {
	n := len(rows) / size
	flat := make(detect.Pane, n*bins)
	out := make([]detect.Pane, n)
	for i := range out {
		out[i] = flat[i*bins : (i+1)*bins]
		sum(out[i], rows[i*size:(i+1)*size])
	}
	return out
}

// sum makes the pane of rows.
func sum(p detect.Pane, rows []drawn) {
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

// curve measures the reference curve on rows, with a slack of one standard deviation.
func curve(rows []drawn) (*detect.Reference, error) {
	p := make(detect.Pane, bins)
	sum(p, rows)
	return detect.ReferenceCurve(p, 1)
}

// dip cuts the reference into 40 stretches, as the stream does.
func dip(rows []drawn) float64 {
	size := max(50, len(rows)/40)
	var out []detect.Stretch
	for i, r := range rows {
		if i%size == 0 {
			out = append(out, detect.Stretch{})
		}
		s := &out[len(out)-1]
		s.N++
		if r.right {
			s.Right++
		}
	}
	return detect.Dip(out)
}
