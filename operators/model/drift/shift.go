package drift

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/pipeline/record"
)

// worstClasses is how many classes a snapshot names by estimate: those whose share has moved most.
const worstClasses = 5

// showClasses says what the predicted classes of a window say of the shares of the classes; apart is whether the window
// has no row of the reference. The estimates go to out too.
func (d *State) showClasses(raw *acc.Set, apart bool, out *record.Unlabelled) {
	t := d.stage
	now := raw.Classes
	if now == nil {
		return
	}
	if n, _ := now.Total(); n == 0 {
		return
	}
	c := &record.Classes{}
	if said := d.ref.classes.said; apart && said != nil {
		a, b := make([]float64, stage.ClassBins), make([]float64, stage.ClassBins)
		stage.AddClasses(a, said)
		stage.AddClasses(b, now)
		if dist, err := unlabelled.Compare(a, b, t.cfg.Alpha); err == nil { // else too few rows yet
			all := distancesOf(dist)
			c.PSI, c.JensenShannon, c.Bins = &all.PSI, &all.JensenShannon, all.Bins
		}
	}
	estimates, why := d.shifts(t.cfg, now, apart)
	c.Why = why
	for i := range estimates {
		e := &estimates[i]
		c.Shifts = append(c.Shifts, t.shiftOf(e))
		one := unlabelled.Estimate{Method: e.Method, Assumption: e.Assumption, N: e.N, Accuracy: e.Accuracy, Lo: e.Lo,
			Hi: e.Hi, ECE: math.NaN()}
		if s := &d.classes.soft; s.ready() && slices.Equal(s.pool.Kept(), e.pool.Kept()) {
			// Of the classes that the sample has; where it lacks much of the window the number would be of something
			// else.
			if ece, covered, err := s.byLabel.ECE(e.Shares); err == nil && covered >= leastCovered {
				one.ECE = ece
			}
		}
		out.Estimates = append(out.Estimates, estimateOf(&one, raw))
	}
	out.Classes = c
}

// leastCovered is the least share of the window that must be of classes that have sampled rows, for its ECE.
const leastCovered = .95

// classEstimate is an estimate of the shares of the classes of a pool.
type classEstimate struct {
	shift.Estimate
	pool *shift.Pool
}

// shifts are the estimates for predictions now, or why there are none: by the labelled reference's confusions, and by
// the calibrator in force on the latest sample.
func (d *State) shifts(spec *Config, now *acc.ClassCounts, apart bool) (out []classEstimate, why string) {
	ref := d.ref.classes.confused
	switch {
	case ref == nil || !d.ref.labelledFull(spec):
		why = "the labelled reference has too few rows yet"
	case ref.Truncated():
		why = "the labelled reference has more pairs of classes than are kept"
	case apart:
		p := confusedPool(ref)
		joint, wrong := confusion(ref, p)
		e, err := shift.BBSE(shift.Table{K: p.Classes(), Says: says(p.Classes()), Joint: joint,
			Now: predictedCounts(now, p)})
		if err != nil {
			why = err.Error()
			break
		}
		p.Mend(&e, wrong, restRows(joint, p))
		out = append(out, classEstimate{e, p})
	}
	if e, err := d.classes.soft.estimate(now); err == nil {
		out = append(out, classEstimate{e, d.classes.soft.pool})
	} else if why == "" {
		why = err.Error()
	}
	return out, why
}

var errSoft = fmt.Errorf("fewer than %d sampled labelled rows", leastSoft)

// table is what the sample and predictions now say by symbol.
func (s *softJoint) table(now *acc.ClassCounts) shift.Table {
	k := s.pool.Classes()
	return shift.Table{K: k, Says: says(k), Joint: s.joint, Now: predictedCounts(now, s.pool), Soft: true}
}

// estimate is EM with the calibrator in force.
func (s *softJoint) estimate(now *acc.ClassCounts) (shift.Estimate, error) {
	if !s.ready() {
		return shift.Estimate{}, errSoft
	}
	e, err := shift.EM(s.table(now))
	if err == nil {
		s.pool.Mend(&e, s.wrong, restRows(s.joint, s.pool))
	}
	return e, err
}

// shiftOf is an estimate as snapshots have it.
func (t *Stage) shiftOf(e *classEstimate) record.ClassShift {
	tv, null := e.Distance()
	s := record.ClassShift{Method: e.Method, Distance: tv, Null: null, Condition: stage.Number(e.Condition),
		Ridge: e.Ridge, Statistic: e.Fit.Statistic, DF: e.Fit.DF, P: e.Fit.P,
		Rejected: e.Fit.P < t.cfg.Alpha, Unknown: e.Unknown, Pooled: e.pool.Rest()}
	order := make([]int, len(e.Shares))
	for j := range order {
		order[j] = j
	}
	moved := func(j int) float64 { return math.Abs(e.Shares[j] - e.Reference[j]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(moved(b), moved(a)) })
	for _, j := range order[:min(worstClasses, len(order))] {
		s.Worst = append(s.Worst, record.ClassShare{Class: e.pool.Class(j), Reference: e.Reference[j],
			Share: e.Shares[j], SE: e.SE[j], Weight: e.Weights[j]})
	}
	return s
}
