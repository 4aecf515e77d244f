package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/section"
)

// The alarm on calibrated, with the test by predicted class and without, on rows of real networks of which one class is
// right less often from a row on, and at the boundary of the null of classes.

// classed are rows at the temperature that fits: confidence and predicted class.
type classed struct {
	c   []float64
	top []int
}

const (
	classRuns = 2 // by class and network
	// classPane is the rows of a pane.
	classPane = 20
	// boundaryAlpha, boundaryPanes and boundaryRuns are of the streams at the boundary: E[false alarms] ≤ α·panes.
	boundaryAlpha = 1e-3
	boundaryPanes = 5000
	boundaryRuns  = 20
)

// classNetworks is the archive of the networks; the first so many by name take part.
const (
	classNetworks     = "c10_chenyaofo19_logits"
	classNetworkCount = 6
)

// heldClassNetworks says of a network, by its place among the names, whether nothing was chosen on it.
func heldClassNetworks(i int) bool { return i%2 == 1 }

// readClassed returns the networks' rows by name.
func readClassed(folder string) (map[string]classed, error) {
	arrays, err := npy.ReadArchive(filepath.Join(folder, classNetworks+".npz"))
	if err != nil {
		return nil, err
	}
	labels := arrays["test_labels"].Int
	out := map[string]classed{}
	for name, a := range arrays {
		if a.F32 == nil {
			continue
		}
		cal, _, err := calibrator.FitTemperature(calibrator.NewData(a.F32, classes, labels, nil), calibrator.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var p classed
		for i := range labels {
			c, top := confidence(a.F32[i*classes:(i+1)*classes], cal.T())
			p.c, p.top = append(p.c, c), append(p.top, top)
		}
		out[name] = p
	}
	return out, nil
}

// draw adds rows to the sums of a pane, by bin and class; right is the rate at a confidence and predicted class.
func (p classed) draw(rng *rand.Rand, rows int, right func(c float64, top int) float64) (pane, byClass detect.Pane) {
	pane, byClass = make(detect.Pane, bins), make(detect.Pane, classes*detect.ClassBands)
	for range rows {
		i := rng.IntN(len(p.c))
		c, top := p.c[i], p.top[i]
		hit := rng.Float64() < right(c, top)
		for _, b := range []*detect.BinSums{&pane[binOf(c)], &byClass[detect.ClassCell(top, c)]} {
			if hit {
				b.N1, b.C1 = b.N1+1, b.C1+c
			} else {
				b.N0, b.C0 = b.N0+1, b.C0+c
			}
		}
	}
	return pane, byClass
}

// classAlarm is the default alarm on calibrated: a third of one false alarm in a year.
func classAlarm(byClass bool) (*detect.Alarm, error) {
	s := detect.AlarmSpec{Alpha: 1. / detect.PanesPerYear10 / 3}
	if byClass {
		s.Classes = classes
	}
	return detect.NewAlarm(s)
}

// firstOfClass returns the row of the first alarm after changeAt calibrated rows and so many with one class right less
// often; -1 for none.
func (p classed) firstOfClass(run, class int, times float64, a *detect.Alarm) (int, error) {
	a = a.Fresh()
	rng := rand.New(rand.NewPCG(uint64(run), uint64(class)))
	for row := 0; row < changeAt+delayLimit; row += classPane {
		pane, byClass := p.draw(rng, classPane, func(c float64, top int) float64 {
			if row >= changeAt && top == class {
				return c * times
			}
			return c
		})
		fired, err := a.Observe(int64(row), pane, byClass)
		if err != nil {
			return 0, err
		}
		if fired != nil {
			return row + classPane, nil
		}
	}
	return -1, nil
}

// boundary returns how many false alarms the test by class had where every class is off by just its tolerance, up and
// down by turns of classes.
func (p classed) boundary(run int) (alarms int, err error) {
	d, err := detect.New(detect.Spec{Null: detect.NullClass, Bins: classes, Alpha: boundaryAlpha})
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(uint64(run), 77))
	for i := range boundaryPanes {
		_, byClass := p.draw(rng, classPane, func(c float64, top int) float64 {
			if top%2 == 0 && c <= 1-detect.DefaultClass {
				return c + detect.DefaultClass
			}
			return max(0, c-detect.DefaultClass)
		})
		fired, err := d.Observe(int64(i), byClass)
		if err != nil {
			return 0, err
		}
		if fired != nil {
			alarms++
		}
	}
	return alarms, nil
}

// delaysOfClasses returns the first alarms of all classes and runs of a network.
func (p classed) delaysOfClasses(times float64, a *detect.Alarm) (first []int, err error) {
	for class := range classes {
		for run := range classRuns {
			at, err := p.firstOfClass(run, class, times, a)
			if err != nil {
				return nil, err
			}
			first = append(first, at)
		}
	}
	return first, nil
}

// classTable measures the test by class.
func classTable(o options) error {
	networks, err := readClassed(o.data)
	if err != nil {
		return err
	}
	var names []string
	for name := range networks {
		names = append(names, name)
	}
	slices.Sort(names)
	names = names[:classNetworkCount]
	var b strings.Builder
	var rows [][]string
	for _, times := range []float64{.6, .7, .8, 1} {
		cells := []string{fmt.Sprintf("× %g", times)}
		if times == 1 {
			cells = []string{"none: alarms"}
		}
		for _, held := range []bool{false, true} {
			for _, byClass := range []bool{false, true} {
				text, err := classDelay(networks, names, times, held, byClass)
				if err != nil {
					return err
				}
				cells = append(cells, text)
			}
		}
		rows = append(rows, cells)
	}
	table(&b, fmt.Sprintf("**One predicted class, right less often**: rows of %d networks at the temperature that "+
		"fits, labels drawn; the default alarm on calibrated, panes of %d, change at row %d, %d runs by class and "+
		"network, median rows to the alarm (never: within %d). Every second network is held out.", len(names),
		classPane, changeAt, classRuns, delayLimit),
		[]string{"fault", "without", "with the test by class", "without, held out", "with, held out"}, rows)
	if err := sameClass(&b, o); err != nil {
		return err
	}
	total, runs := 0, 0
	for _, name := range names {
		for run := range boundaryRuns {
			n, err := networks[name].boundary(run)
			if err != nil {
				return err
			}
			total, runs = total+n, runs+1
		}
	}
	fmt.Fprintf(&b, "\nAt the boundary of its null (every class off by %g, up or down): %d false alarms in %d runs of "+
		"%d panes at 1/α = %g; the bound is %g.\n", detect.DefaultClass, total, runs, boundaryPanes, 1/boundaryAlpha,
		boundaryAlpha*boundaryPanes*float64(runs))
	fmt.Print(b.String())
	if o.docs == "" {
		return nil
	}
	return section.Replace(o.docs, "classes", b.String())
}

// sameClass measures the change of the table beside the oracle, on its rows.
func sameClass(b *strings.Builder, o options) error {
	s, err := readScores(o.data)
	if err != nil {
		return err
	}
	var p classed
	z := s.z["resnet20"]
	for i := range s.labels {
		c, top := confidence(z[i*classes:(i+1)*classes], s.t)
		p.c, p.top = append(p.c, c), append(p.top, top)
	}
	var medians []string
	for _, byClass := range []bool{false, true} {
		a, err := classAlarm(byClass)
		if err != nil {
			return err
		}
		var first []int
		for run := range ruleRuns {
			at, err := p.firstOfClass(heldRuns+run, 3, .6, a)
			if err != nil {
				return err
			}
			first = append(first, at)
		}
		medians = append(medians, summarise(first, changeAt).rows())
	}
	fmt.Fprintf(b, "\nClass 3 of the network of the other tables, right .6 times as often (%d runs from %d on): %s "+
		"rows without, %s with the test.\n", ruleRuns, heldRuns, medians[0], medians[1])
	return nil
}

func classDelay(networks map[string]classed, names []string, times float64, held, byClass bool) (string, error) {
	a, err := classAlarm(byClass)
	if err != nil {
		return "", err
	}
	var first []int
	for i, name := range names {
		if heldClassNetworks(i) != held {
			continue
		}
		at, err := networks[name].delaysOfClasses(times, a)
		if err != nil {
			return "", err
		}
		first = append(first, at...)
	}
	if times == 1 {
		return fmt.Sprintf("%.0f of %d", summarise(first, 0).crossed*float64(len(first)), len(first)), nil
	}
	return summarise(first, changeAt).rows(), nil
}
