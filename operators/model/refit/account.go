package refit

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// account counts what the sampled rows of a version lost by being calibrated: the sum of NLL(as served) - NLL(raw
// scores), in nats, each in [-B, B]. It is negative where calibration helps, so what helped for long is not given up
// for a bad hour. When more than accountLimit nats are lost, the identity takes force and a new sum begins: the j-th
// return. After it nothing else takes force for h·2^j sampled rows, h = fresh_rows. So among any N sampled rows, on any
// stream, what is served loses at most
//
//	log2(2 + N/h)·(c + n·B)
//
// nats more than the raw scores, with c = accountLimit and n sampled rows in flight (docs/math.md, The gate of a
// refit), and c + n·B more for each time that B has risen for a rare class: a new sum begins then, too (losses.go).
// Rows beyond a pane's sample (sample.rows_per_cell) are not counted. Orders of people are not held back, and what a
// pin keeps in force is not counted. The returns of a version are never forgotten. The corrections of the top
// confidence have an account of their own, of what they lose to the calibrators below them.
type account struct {
	lost    float64 // nats, of rows predicted since the last return
	since   int64   // event time of the last return
	returns int     // j
	rest    int64   // sampled rows until something may take force again
}

// accountLimit is c, in nats: what may be lost before the identity returns. Chosen on the streams tuned on, where at
// most 29 were lost.
const accountLimit = 40.

// mostReturns keeps h·2^j in range.
const mostReturns = 40

// resting reports whether nothing may take force but the identity.
func (a *account) resting() bool { return a.rest > 0 }

// pass counts a pane's rows towards the end of a rest. Those that were predicted before it count, too: without them a
// stream whose labels are late would be served raw for longer than it takes to know better.
func (a *account) pass(rows []acc.SampleRow) { a.rest = max(0, a.rest-int64(len(rows))) }

// begin begins a new sum with a rest.
func (a *account) begin(now int64, cfg *Config) {
	*a = account{since: now, returns: min(a.returns+1, mostReturns)}
	a.rest = int64(max(cfg.FreshRows, leastTracked)) << a.returns
}

// holds says why a calibrator that is proved better may not take force; "" = it may.
func (a *account) holds() string {
	if !a.resting() {
		return ""
	}
	return fmt.Sprintf("it may take force after %d more sampled rows, because calibration had lost too much before",
		a.rest)
}

// stepAccount counts a pane's rows and reports whether the identity took force.
func stepAccount(s *State, in *stage.Pane) (returned bool, err error) {
	a, cfg := &s.account, &s.stage.cfg
	if s.pin != nil {
		return false, nil
	}
	a.pass(in.Rows)
	if cfg.RollbackPanes <= 0 { // now: a rest of before ends all the same
		return false, nil
	}
	x, err := lostBy(s.publisher, in.Rows)
	if err != nil {
		return false, err
	}
	if a.lost += x.lost; a.lost <= accountLimit {
		return false, nil
	}
	return giveBack(s, in, &x)
}

// losses are those of a pane's rows that were predicted since the last return and served calibrated.
type losses struct {
	rows              int
	w, lost           float64 // lost is in units of weight, of which a row has 1 at most
	inForce, identity float64 // Σ w·NLL
}

func lostBy(p *publisher, rows []acc.SampleRow) (x losses, err error) {
	v := p.version
	sc, bound := stage.NewScorer(v.K), p.bound()
	for i := range rows {
		row := &rows[i]
		f := v.At(row.TS, row.ID)
		if f == nil || isIdentity(f.Cal) || row.TS < p.account.since {
			continue
		}
		served, err := sc.Row(f.Cal, row, bound)
		if err != nil {
			return x, err
		}
		raw, err := sc.Row(nil, row, bound)
		if err != nil {
			return x, err
		}
		w := float64(row.W)
		x.rows, x.w = x.rows+1, x.w+w
		x.inForce, x.identity = x.inForce+w*served.NLL, x.identity+w*raw.NLL
		x.lost += unitOf(w, p.unit) * (served.NLL - raw.NLL)
	}
	return x, nil
}

// giveBack begins a new sum, and puts the identity into force if something else is.
// The pane's losses are its evidence.
func giveBack(s *State, in *stage.Pane, x *losses) (returned bool, err error) {
	a := &s.account
	lost := a.lost
	a.begin(in.End, &s.stage.cfg)
	why := fmt.Sprintf("the log loss of the calibrated scores, summed over rows, is %.1f above that of the raw scores",
		lost)
	if s.run.busy() {
		if err := s.end(why, in.End); err != nil {
			return false, err
		}
	}
	if f := s.version.Newest(); f == nil || isIdentity(f.Cal) {
		return false, nil
	}
	why = fmt.Sprintf("%s; nothing else takes force for %d sampled rows", why, a.rest)
	return true, s.identityAgain(reasonRollback, why,
		record.Evidence{TestRows: x.rows, TestTo: record.At(in.End),
			NLLInForce: stage.FiniteOrZero(x.inForce / x.w), NLLNew: stage.FiniteOrZero(x.identity / x.w),
			NLLDiff: stage.FiniteOrZero((x.identity - x.inForce) / x.w)}, in.End)
}
