package drift

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/unlabelled"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// worstClasses is the number of classes that a snapshot names for each estimate: those whose share has moved most.
const worstClasses = 5

// showClasses describes the class shares that a window's predicted classes imply. apart says that the window has no row
// of the reference. The estimates are added to out, too, each with its miss.
func (d *State) showClasses(raw *acc.Set, apart bool, carry float64, out *record.Unlabelled) {
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
		if dist, err := unlabelled.Compare(a, b, t.cfg.Alpha); err == nil { // otherwise there are too few rows yet
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
			Hi: e.Hi, SE: (e.Hi - e.Lo) / (2 * z95), ECE: math.NaN()}
		if s := &d.classes.soft; s.ready() && slices.Equal(s.pool.Kept(), e.pool.Kept()) {
			// The ECE covers only classes with sampled rows. If these are too small a part of the window, the ECE would
			// describe something else, so it stays out.
			if ece, covered, err := s.byLabel.ECE(e.Shares); err == nil && covered >= leastCovered {
				one.ECE = ece
			}
		}
		said := estimateOf(&one, raw, carry)
		said.Rejected = e.Fit.P < t.cfg.Alpha // its numbers stay, as the test sees small errors, too
		out.Estimates = append(out.Estimates, said)
	}
	out.Classes = c
}

const z95 = 1.959963984540054

// leastCovered is the smallest share of a window that must belong to classes with sampled rows for an ECE to be given.
const leastCovered = .95

// classEstimate is an estimate of the class shares, by the classes of a pool.
type classEstimate struct {
	shift.Estimate
	pool *shift.Pool
}

// shifts returns the estimates for the predictions now: one from the confusions of the labelled reference, one from the
// calibrator in force on the latest sample. If one is missing, why says so.
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
	soft, err := &d.classes.soft, errSoft
	if soft.ready() {
		var e shift.Estimate
		if e, err = soft.estimate(now); err == nil {
			return append(out, classEstimate{e, soft.pool}), why
		}
	}
	if why == "" {
		why = err.Error()
	}
	return out, why
}

var errSoft = fmt.Errorf("fewer than %d sampled labelled rows", leastSoft)

// table is the input of the estimate: the joint distribution in the sample, and the predictions now, by symbol.
func (s *softJoint) table(now *acc.ClassCounts) shift.Table {
	k := s.pool.Classes()
	return shift.Table{K: k, Says: says(k), Joint: s.joint, Now: predictedCounts(now, s.pool), Soft: true}
}

// estimate estimates the class shares by EM with the calibrator in force.
func (s *softJoint) estimate(now *acc.ClassCounts) (shift.Estimate, error) {
	e, err := shift.EM(s.table(now))
	if err == nil {
		s.pool.Mend(&e, s.wrong, restRows(s.joint, s.pool))
	}
	return e, err
}

// shiftOf converts an estimate to its form in snapshots.
func (t *Stage) shiftOf(e *classEstimate) record.ClassShift {
	tv, null := e.Distance()
	s := record.ClassShift{
		Method:    e.Method,
		Distance:  tv,
		Null:      null,
		Condition: stage.Number(e.Condition),
		Ridge:     e.Ridge,
		Statistic: e.Fit.Statistic,
		DF:        e.Fit.DF,
		P:         e.Fit.P,
		Rejected:  e.Fit.P < t.cfg.Alpha,
		Unknown:   e.Unknown,
		Pooled:    e.pool.Rest(),
	}
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
