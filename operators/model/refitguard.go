package model

import (
	"bytes"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// guardStakes is the number of bets that a rival mixes, as evalue.Paired does.
const guardStakes = 12

// keptRivals is how many calibrators from before earlier changes a guard keeps: what a stream was like, it may become again.
const keptRivals = 3

// guard tests the calibrator in force, all the time, against the one before it, against those that were replaced at the latest
// changes (an alarm, a rollback, an order: a refit by period leaves nothing behind that is worth it), and against the identity.
type guard struct {
	weight float64 // the unit of row weights; 0 = 1
	rivals []*rival
}

// rival is one of those that the calibrator in force is tested against. With gains x_i = NLL(in force) - NLL(rival) in
// [-B, B], the null is that the one in force is not worse: E[x_i | past] ≤ 0. The test is the Shiryaev-Roberts mixture of
// the bets of evalue.Paired,
//
//	R_k ← (R_k + 1)·Π_{rows of a pane}(1 + λ_k x_i),  λ_k = 0.9·2^-k/B;  alarm where 1/12 Σ_k R_k ≥ m/α
//
// so that R_t - t is a supermartingale over panes: one false rollback in 1/α label panes on average, or fewer, for ever, and a
// calibrator that was better for a year is found out as fast as a new one (evalue.Paired would first lose its wealth).
type rival struct {
	revision int // 0 the identity
	cal      calibrator.Calibrator
	encoded  []byte
	logR     [guardStakes]float64
	// Of the rows since there was last no evidence: for people.
	rows            int64
	from            int64
	w               float64
	inForce, itself float64

	known sampleLosses
}

// newGuard returns the guard of f, which replaced old (nil = the identity), where nothing is known of what was before that.
func newGuard(old, f *stage.InForce, weight float64) *guard {
	return (*guard)(nil).next(old, f, weight)
}

// next returns the guard of f, which replaced old (nil = the identity), whose guard g was. The first rival is old.
func (g *guard) next(old, f *stage.InForce, weight float64) *guard {
	n := &guard{weight: weight}
	none := &rival{cal: calibrator.Identity{}, encoded: []byte(`{"version":1,"method":"identity"}`)}
	if old == nil {
		n.rivals = []*rival{none}
	} else {
		n.rivals = []*rival{{revision: old.Revision, cal: old.Cal, encoded: old.Encoded}}
		for _, r := range g.changed(old) {
			if len(n.rivals) <= keptRivals && !bytes.Equal(r.encoded, f.Encoded) && !bytes.Equal(r.encoded, old.Encoded) {
				n.rivals = append(n.rivals, &rival{revision: r.revision, cal: r.cal, encoded: r.encoded})
			}
		}
		if !isIdentity(old.Cal) && !isIdentity(f.Cal) {
			n.rivals = append(n.rivals, none)
		}
	}
	for _, r := range n.rivals {
		for k := range r.logR {
			r.logR[k] = math.Inf(-1)
		}
	}
	return n
}

// changed are the rivals of f that were replaced at a change, newest first.
func (g *guard) changed(f *stage.InForce) (out []*rival) {
	if g == nil {
		return nil
	}
	for i, r := range g.rivals {
		if !isIdentity(r.cal) && (i > 0 || f.Reason != reasonPeriod) {
			out = append(out, r)
		}
	}
	return out
}

func isIdentity(c calibrator.Calibrator) bool {
	_, ok := c.(calibrator.Identity)
	return ok
}

// rollbackAlpha is the level of the test: false rollbacks a label pane.
func rollbackAlpha(spec *RefitSpec) float64 { return 1 / float64(spec.RollbackPanes) }

// stepGuard tests a pane's rows that came after the newest calibrator took force, and takes it back where a rival is
// significantly better.
func (t *ModelTask) stepGuard(v *version, k *keyState, in *stage.Pane) (rolled bool, err error) {
	spec, f, g := &t.cfg.Refit, v.Newest(), v.refit.guard
	if spec.RollbackPanes <= 0 || f == nil || g == nil || v.refit.pin != nil {
		return false, nil
	}
	sc, bound := stage.NewScorer(v.K), nllBound(v.K)
	for _, r := range g.rivals {
		r.open()
	}
	for i := range in.Rows {
		row := &in.Rows[i]
		if row.TS < f.From {
			continue
		}
		now, err := sc.Row(f.Cal, row, bound)
		if err != nil {
			return false, err
		}
		w := float64(row.W)
		unit := w
		if g.weight > 0 {
			unit = w / g.weight
		}
		for _, r := range g.rivals {
			was, err := sc.Row(r.cal, row, bound)
			if err != nil {
				return false, err
			}
			r.add(row.TS, w, now.NLL, was.NLL, min(unit, 1), bound)
		}
	}
	need := math.Log(float64(len(g.rivals)) / rollbackAlpha(spec))
	var best *rival // with the most evidence
	for _, r := range g.rivals {
		if r.logMean() >= need && r.rows >= leastValidation && (best == nil || r.logMean() > best.logMean()) {
			best = r
		}
	}
	if best == nil {
		return false, nil
	}
	o, err := t.outlook(v, k)
	if err != nil {
		return false, err
	}
	if low, err := o.of(best.cal, &best.known, (best.inForce-best.itself)/best.w, best.w, best.from); err != nil || low <= 0 {
		return false, err
	}
	return true, t.rollBack(v, k, best, need, in.End)
}

// open injects a pane's one.
func (r *rival) open() {
	if r.logMean() < math.Ln2 { // nothing speaks for it: what people are shown starts anew
		r.rows, r.from, r.w, r.inForce, r.itself = 0, 0, 0, 0, 0
	}
	for k, l := range r.logR {
		r.logR[k] = max(l, 0) + math.Log1p(math.Exp(-math.Abs(l)))
	}
}

func (r *rival) add(ts int64, w, now, was, unit, bound float64) {
	if r.rows == 0 {
		r.from = ts
	}
	r.rows++
	r.from = min(r.from, ts)
	r.w += w
	r.inForce += w * now
	r.itself += w * was
	stake := .9 / bound * unit * (now - was)
	for k := range r.logR {
		r.logR[k] += math.Log1p(stake)
		stake /= 2
	}
}

// logMean is the log of the mean of the R_k.
func (r *rival) logMean() float64 {
	top := math.Inf(-1)
	for _, l := range r.logR {
		top = max(top, l)
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, l := range r.logR {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum/guardStakes)
}

// rollBack puts a rival into force again, as a revision of its own.
func (t *ModelTask) rollBack(v *version, k *keyState, r *rival, need float64, now int64) error {
	d := record.Calibrator{Reason: reasonRollback, Restores: &r.revision, Method: r.cal.Method(), Evidence: record.Evidence{TestRows: int(r.rows),
		NLLInForce: orZero(r.inForce / r.w), NLLNew: orZero(r.itself / r.w), NLLDiff: orZero((r.itself - r.inForce) / r.w), LogE: r.logMean(), LogENeeded: need,
		Alpha: rollbackAlpha(&t.cfg.Refit), NLLBound: nllBound(v.K), FitTo: pipeline.Format(r.from), TestTo: pipeline.Format(now)}}
	d.Outcome = fmt.Sprintf("published: rollback to %s, NLL %.5f → %.5f on the latest %d rows", named(r.revision), d.Evidence.NLLInForce, d.Evidence.NLLNew, r.rows)
	return t.putInForce(v, k, &d, r.cal, r.encoded, now)
}

func named(revision int) string {
	if revision == 0 {
		return "the identity"
	}
	return fmt.Sprintf("revision %d", revision)
}
