package refit

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// stakes is the number of bets that the test of a baseline mixes, as in evalue.Paired.
const stakes = 12

// keptBaselines is the number of calibrators from before earlier changes that a monitor keeps, because a stream may
// return to an earlier regime.
const keptBaselines = 3

// beyondDoubt times the logarithm of the evidence that a rollback needs is enough without an outlook: the square of
// that evidence, which comes by mistake once in the square of rollback_panes. The outlook of a stream that returns to
// earlier regimes is bad for as long as it does, and what is in force is wrong meanwhile.
const beyondDoubt = 2

// monitor is the rollback monitor. It tests the calibrator in force, at every pane, against its baselines: the
// calibrator before it, the calibrators replaced at the latest changes, and the identity. A change is an alarm, a
// rollback or an order. A refit by period is not a change, so it leaves no baseline.
//
// A publication may have been wrong from its first row. So where it can change the predicted class, fell is an
// e-process on accuracy against the calibrator before it, from the publication on: the mean of Π(1 + λ_k x_i) over its
// rows, without the 1 that is added at a pane. While E[hit(before) - hit(in force) | past] ≤ 0, it is at least 1/α at
// any pane with probability at most α = refit.alpha (Ville). It reaches that within one pane of 100 rows where the
// accuracy is a fifth lower, the tests below where it is a third lower.
type monitor struct {
	weight    float64 // unit of row weights; 0 = 1
	baselines []*baseline
	fell      wealth
}

// baseline is a calibrator that the one in force is tested against. With gains x_i = NLL(in force) - NLL(baseline) in
// [-B, B], the null hypothesis is that the calibrator in force is not worse: E[x_i | past] ≤ 0. The test is the
// Shiryaev-Roberts mixture of the bets of evalue.Paired,
//
//	R_k ← (R_k + 1)·Π_{rows of a pane}(1 + λ_k x_i),  λ_k = 0.9·2^-k/B;  alarm where 1/12 Σ_k R_k ≥ m/α
//
// so R_t - t is a supermartingale over panes. On average there is at most one false rollback in 1/α label panes,
// without an end in time. A calibrator that was better for a year and then becomes worse is found as fast as a new one;
// evalue.Paired would first have to lose its wealth. Where one of the two can change the predicted class, the same test
// runs on accuracy: x_i = hit(baseline) - hit(in force) - a, where a is the allowed fall of the row's class, and
// B = 1 + a. It takes back an accuracy that falls after tens of rows, not hundreds; a run of a class at whose cost the
// others gained does not bring it about. m counts all tests.
type baseline struct {
	revision int // 0 = the identity
	cal      calibrator.Calibrator
	encoded  []byte
	nll, acc wealth
	// allowed is, by class, how much less accurate than the baseline the calibrator in force may be: the fall that was
	// known at its publication (at most classFalls, but for weights of classes), and classMargin. nil = neither can
	// change a class.
	allowed []float64
	// Sums over the rows since there was last no evidence. Records show them, and the outlook uses them.
	rows            int64
	from            int64
	w               float64
	inForce, itself float64
	// Weight of the rows that the calibrator in force and the baseline classify correctly.
	hits, itsHits float64

	known sampleLosses
}

// wealth is the logarithm of the R_k of a test.
type wealth [stakes]float64

// none is the wealth before the first pane.
func (w *wealth) none() {
	for k := range w {
		w[k] = math.Inf(-1)
	}
}

// open starts a pane: it adds the 1 to each R_k.
func (w *wealth) open() {
	for k, l := range w {
		w[k] = max(l, 0) + math.Log1p(math.Exp(-math.Abs(l)))
	}
}

// bet multiplies each R_k by the outcome of a row. stake is the outcome of the largest bet.
func (w *wealth) bet(stake float64) {
	for k := range w {
		w[k] += math.Log1p(stake)
		stake /= 2
	}
}

// mean returns the logarithm of the mean of the R_k.
func (w *wealth) mean() float64 {
	top := slices.Max(w[:])
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, l := range w {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum/stakes)
}

// next returns the monitor of f. f replaces old (nil = the identity), and m is the monitor of old (nil = nothing is
// known of earlier calibrators). The first baseline is old.
func (m *monitor) next(old, f *stage.InForce, weight float64) *monitor {
	n := &monitor{weight: weight}
	none := &baseline{cal: calibrator.Identity{}, encoded: []byte(`{"version":1,"method":"identity"}`)}
	if old == nil {
		n.baselines = []*baseline{none}
	} else {
		n.baselines = []*baseline{{revision: old.Revision, cal: old.Cal, encoded: old.Encoded}}
		for _, b := range m.changed(old) {
			again := bytes.Equal(b.encoded, f.Encoded) || bytes.Equal(b.encoded, old.Encoded)
			if len(n.baselines) <= keptBaselines && !again {
				n.baselines = append(n.baselines, &baseline{revision: b.revision, cal: b.cal, encoded: b.encoded})
			}
		}
		if !isIdentity(old.Cal) && !isIdentity(f.Cal) {
			n.baselines = append(n.baselines, none)
		}
	}
	for _, b := range n.baselines {
		b.nll.none()
		b.acc.none()
	}
	return n
}

// allow prepares the tests on accuracy of f, by the sampled rows of now.
func (m *monitor) allow(f *stage.InForce, k *stage.Key) error {
	for _, b := range m.baselines {
		weighs := weighsClasses(f.Cal) || weighsClasses(b.cal)
		if !weighs && !changesClass(f.Cal.Method()) && !changesClass(b.cal.Method()) {
			continue
		}
		falls := make([]fall, k.K)
		both := pair{capped{k.K, math.Inf(1)}, b.cal, f.Cal}
		err := both.each(k.Sample, func(row *acc.SampleRow, was, now stage.RowScore) {
			falls[row.Y].add(was.Hit, now.Hit)
		})
		if err != nil {
			return err
		}
		b.allowed = make([]float64, k.K)
		for y := range falls {
			d, _ := falls[y].mean()
			if d = max(0, d); !weighs {
				d = min(d, classFalls) // a class that was rare before must not lose more than a candidate may
			}
			b.allowed[y] = min(1, d+classMargin)
		}
	}
	return nil
}

// changed returns the baselines of f that were replaced at a change, newest first.
func (m *monitor) changed(f *stage.InForce) (out []*baseline) {
	if m == nil {
		return nil
	}
	for i, b := range m.baselines {
		if !isIdentity(b.cal) && (i > 0 || f.Reason != reasonPeriod) {
			out = append(out, b)
		}
	}
	return out
}

// rollbackAlpha returns the level of the test: false rollbacks a label pane.
func (c *Config) rollbackAlpha() float64 { return 1 / float64(c.RollbackPanes) }

// stepMonitor tests the calibrator in force on the pane's rows that it calibrated. If a baseline is significantly
// better, it rolls back to that.
func (p *publisher) stepMonitor(in *stage.Pane) (rolled bool, err error) {
	cfg, f, m := &p.stage.cfg, p.version.Newest(), p.monitor
	if cfg.RollbackPanes <= 0 || f == nil || m == nil || p.pin != nil {
		return false, nil
	}
	if err := m.take(p.bounded(), f, in); err != nil {
		return false, err
	}
	if rolled, err := p.unlearn(in.End); rolled || err != nil {
		return rolled, err
	}
	if p.account.resting() {
		return false, nil
	}
	if e, need := m.fell.mean(), math.Log(1/cfg.Alpha); m.baselines[0].allowed != nil && e >= need {
		b := withBestNLL(m.baselines, m.baselines[0].acc.mean(), (*baseline).onAccuracy)
		return true, p.rollBack(b, e, need, in.End)
	}
	need := math.Log(float64(m.tests()) / cfg.rollbackAlpha())
	if b := m.best(nil, need, (*baseline).onAccuracy); b != nil {
		return true, p.rollBack(b, b.acc.mean(), need, in.End)
	}
	best := m.best(p.sampled(), need, (*baseline).onNLL)
	if best == nil {
		return false, nil
	}
	if why, err := stage.Biased(p.sampled(), best.from, stage.SettledInOrder); why != "" || err != nil {
		if err == nil {
			err = p.withhold("a calibrator that did better does not come back into force", why, in.End)
		}
		return false, err
	}
	if best.nll.mean() >= beyondDoubt*need {
		return true, p.rollBack(best, best.nll.mean(), need, in.End)
	}
	if !weighsClasses(inForce(p.version)) && !weighsClasses(best.cal) {
		k := p.sampled()
		gains, err := gainsByClass(p, best.cal, rowsAt(k, newestOfClasses(k, recentOfClasses)))
		if err != nil || worstRuns(k.Sample, gains, max(cfg.FreshRows, leastValidation)) < 0 {
			return false, err
		}
	}
	o, err := p.newOutlook()
	if err != nil {
		return false, err
	}
	low, err := o.of(best.cal, &best.known, gained{(best.inForce - best.itself) / best.w, best.w, best.from, nil})
	if err != nil || low <= 0 {
		return false, err
	}
	return true, p.rollBack(best, best.nll.mean(), need, in.End)
}

// trusted reports whether a baseline may come back into force. One that can change classes needs rows that tell the
// classes of later rows, as a candidate does.
func (b *baseline) trusted(k *stage.Key) bool {
	return !learnsClasses(b.cal.Method()) || unmixed(k.K, k.Sample) == ""
}

// tests is the number of tests that run.
func (m *monitor) tests() (n int) {
	for _, b := range m.baselines {
		if n++; b.allowed != nil {
			n++
		}
	}
	return n
}

// take tests f, the calibrator in force, on the rows of a pane that it calibrated.
func (m *monitor) take(of capped, f *stage.InForce, in *stage.Pane) error {
	sc, bound := stage.NewScorer(of.k), of.bound
	for _, b := range m.baselines {
		b.open()
	}
	for i := range in.Rows {
		row := &in.Rows[i]
		if row.TS < f.From {
			continue
		}
		now, err := sc.Row(f.Cal, row, bound)
		if err != nil {
			return err
		}
		w := float64(row.W)
		unit := unitOf(w, m.weight)
		for i, b := range m.baselines {
			was, err := sc.Row(b.cal, row, bound)
			if err != nil {
				return err
			}
			b.nll.bet(.9 / bound * unit * (now.NLL - was.NLL))
			if b.allowed != nil {
				a := b.allowed[row.Y]
				stake := .9 / (1 + a) * unit * (hit(was) - hit(now) - a)
				if b.acc.bet(stake); i == 0 {
					m.fell.bet(stake)
				}
			}
			b.add(row.TS, w, now, was)
		}
	}
	return nil
}

func hit(r stage.RowScore) float64 {
	if r.Hit {
		return 1
	}
	return 0
}

// best returns a baseline with enough evidence, of those with the most the one with the best NLL; nil if there is none.
// With a key, it must be one that is trusted.
func (m *monitor) best(k *stage.Key, need float64, evidence func(*baseline) float64) *baseline {
	var enough []*baseline
	most := need
	for _, b := range m.baselines {
		if x := evidence(b); x >= need && (k == nil || b.trusted(k)) {
			enough, most = append(enough, b), max(most, x)
		}
	}
	return withBestNLL(enough, most, evidence)
}

// withBestNLL returns, of the baselines with at least half of so much evidence, the one for which NLL speaks most.
// Maps that leave each row's class as it is are equally accurate: without the NLL it would be any of them.
func withBestNLL(of []*baseline, most float64, evidence func(*baseline) float64) (best *baseline) {
	for _, b := range of {
		if evidence(b) >= most-math.Ln2 && (best == nil || b.nll.mean() > best.nll.mean()) {
			best = b
		}
	}
	return best
}

// onNLL is the evidence that the baseline has the lower NLL.
func (b *baseline) onNLL() float64 {
	if b.rows < leastValidation {
		return math.Inf(-1)
	}
	return b.nll.mean()
}

// onAccuracy is the evidence that the baseline is more accurate than allowed. It needs no least number of rows, no
// outlook and no trust: an accuracy that falls so far is taken back first, and understood later.
func (b *baseline) onAccuracy() float64 { return b.acc.mean() }

// open starts a pane.
func (b *baseline) open() {
	// The sums start again where there is no evidence for it, or where that is older than a loss since.
	if b.acc.mean() < math.Ln2 && (b.nll.mean() < math.Ln2 || b.inForce <= b.itself) {
		b.rows, b.from, b.w, b.inForce, b.itself, b.hits, b.itsHits = 0, 0, 0, 0, 0, 0, 0
	}
	b.nll.open()
	if b.allowed != nil {
		b.acc.open()
	}
}

// add adds a row of weight w to the sums, as the calibrator in force and the baseline score it.
func (b *baseline) add(ts int64, w float64, now, was stage.RowScore) {
	if b.rows == 0 {
		b.from = ts
	}
	b.rows++
	b.from = min(b.from, ts)
	b.w += w
	b.inForce += w * now.NLL
	b.itself += w * was.NLL
	b.hits += w * hit(now)
	b.itsHits += w * hit(was)
}

// rollBack puts a baseline back into force, as a new revision. logE is the evidence for it.
func (p *publisher) rollBack(b *baseline, logE, need float64, now int64) error {
	d := record.Calibrator{Reason: reasonRollback, State: record.DecidedRolledBack, Restores: &b.revision,
		Method: b.cal.Method(),
		Evidence: record.Evidence{TestRows: int(b.rows), NLLInForce: stage.FiniteOrZero(b.inForce / b.w),
			NLLNew: stage.FiniteOrZero(b.itself / b.w), NLLDiff: stage.FiniteOrZero((b.itself - b.inForce) / b.w),
			LogE: logE, LogENeeded: need, Alpha: p.stage.cfg.rollbackAlpha(), NLLBound: p.bound(),
			FitTo: record.At(b.from), TestTo: record.At(now)}}
	what := fmt.Sprintf("NLL %.5f → %.5f", d.Evidence.NLLInForce, d.Evidence.NLLNew)
	if b.allowed != nil {
		d.Evidence.AccInForce, d.Evidence.AccNew = b.hits/b.w, b.itsHits/b.w
		what = fmt.Sprintf("accuracy %.4f → %.4f, ", d.Evidence.AccInForce, d.Evidence.AccNew) + what
	}
	d.Outcome = fmt.Sprintf("published: rollback to %s, %s on the latest %d rows", revisionName(b.revision), what,
		b.rows)
	return p.putInForce(&d, b.cal, b.encoded, now)
}

// A calibrator is doubted for the labels that its rows lacked for unlearnFor times as long as these took, and looked at
// unlearnLooks times in each such span: a look costs as much as scoring the sample.
const (
	unlearnFor   = 4
	unlearnLooks = 8
)

// doubt is of the calibrator in force: the event times of the first row of its fit, 0 where it is not doubted, or no
// longer, and since which what it replaced had been in force.
type doubt struct{ from, before int64 }

// unlearn takes back a calibrator where the rows that it was fitted and tested on were no fair sample: what it replaced
// returns if that took force before those rows, else the identity. At its publication the predictions of their time
// could still get the labels that they lack.
func (p *publisher) unlearn(now int64) (bool, error) {
	f, pane := p.version.Newest(), p.stage.env.Pane
	took := f.From - p.doubt.from
	if p.doubt.from == 0 || isIdentity(f.Cal) || took <= 0 || now-f.From > unlearnFor*took {
		p.doubt = doubt{}
		return false, nil
	}
	if every := max(pane, took/unlearnLooks); (now-f.From)/every == (now-pane-f.From)/every {
		return false, nil
	}
	k, since := p.sampled(), p.doubt.from
	if len(k.Sample) > 0 { // of predictions from before, those with late labels outstay the others
		since = max(since, (pipeline.PaneIndex(k.Sample[0].LabelTS, pane)+1)*pane)
	}
	why, err := stage.WithheldBetween(k, since, f.From)
	if why == "" || err != nil {
		return false, err
	}
	why = fmt.Sprintf("the rows that %s was fitted on are no fair sample of the predictions: %s",
		revisionName(f.Revision), why)
	found := record.Evidence{FitFrom: record.At(p.doubt.from), FitTo: record.At(f.From)}
	if b := p.monitor.baselines[0]; p.doubt.before <= p.doubt.from {
		d := record.Calibrator{Reason: record.ReasonLabels, State: record.DecidedRolledBack, Restores: &b.revision,
			Method: b.cal.Method(), Evidence: found,
			Outcome: fmt.Sprintf("published: rollback to %s: %s", revisionName(b.revision), why)}
		err = p.putInForce(&d, b.cal, b.encoded, now)
	} else {
		err = p.identityAgain(record.ReasonLabels, why, found, now)
	}
	// By rows like those that it was fitted on it looks better, so nothing may bring it back.
	p.monitor = p.monitor.without(f.Revision)
	return true, err
}

// takenBack reports whether f is in force because another was taken back.
func takenBack(f *stage.InForce) bool {
	return f != nil && (f.Reason == reasonRollback || f.Reason == record.ReasonLabels)
}

// without is the monitor without a revision among its baselines; nil where it has no other.
func (m *monitor) without(revision int) *monitor {
	m.baselines = slices.DeleteFunc(m.baselines, func(b *baseline) bool { return b.revision == revision })
	if len(m.baselines) == 0 {
		return nil
	}
	return m
}

// identityAgain puts the identity into force in place of what a refit had put there.
func (p *publisher) identityAgain(reason, why string, found record.Evidence, now int64) error {
	encoded, err := calibrator.Encode(calibrator.Identity{})
	if err != nil {
		return err
	}
	revision := 0
	d := record.Calibrator{Reason: reason, State: record.DecidedRolledBack, Restores: &revision,
		Method: "identity", Outcome: "published: rollback to the identity: " + why, Evidence: found}
	return p.putInForce(&d, calibrator.Identity{}, encoded, now)
}

func revisionName(revision int) string {
	if revision == 0 {
		return "the identity"
	}
	return fmt.Sprintf("revision %d", revision)
}
