package alarm

import (
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// trail holds the panes since an alarm in blocks of 1, 2, 4, … panes, oldest first, at most two of a size (an
// exponential histogram). It can sum the latest n rows for n that grow by powers of two.
type trail struct{ blocks []trailBlock }

type trailBlock struct {
	panes uint64
	sums  detect.Pane
}

func (t *trail) add(p detect.Pane) {
	own := make(detect.Pane, len(p))
	plusPane(own, p)
	t.blocks = append(t.blocks, trailBlock{1, own})
	for i := len(t.blocks) - 1; i >= 2 && t.blocks[i].panes == t.blocks[i-2].panes; i -= 2 {
		plusPane(t.blocks[i-2].sums, t.blocks[i-1].sums)
		t.blocks[i-2].panes *= 2
		t.blocks = slices.Delete(t.blocks, i-1, i)
	}
}

// rows returns Σw over all panes.
func (t *trail) rows() float64 {
	var n float64
	for _, b := range t.blocks {
		n += b.sums.N()
	}
	return n
}

// cleared reports, at the end of a pane, whether evidence shows that the error is back inside the tolerance. There are
// two ways.
//
// First, some stretch of latest rows since the alarm, ClearRows or more, has an ECE within the tolerance with 95 %
// confidence, one-sided:
//
//	ECE, debiased, + 1.645 se ≤ ε        se² = Σ_j (n_j/n)² v_j,   v_j = p(1-p)/n_j,   p = (hits + 1)/(n_j + 2)
//
// and so has every bin that the diagnosis named when it fired: |gap| and sqrt(v_j) are at most the bin's ε. A bin with
// less than ε/2 of the rows cannot matter to the ECE, and would keep a healed alarm for long; for it, sqrt(v_j) may be
// 2ε. A handful of rows there shows nothing, and none only where 7 were to be expected. A bin that its rows have left
// needs none: a fault fills bins that a healed model hardly uses. Nor does a bin whose error the second way would drop.
// In change mode gaps are measured from the reference curve. Of every class that the test by class named, |gap| +
// 1.645 sqrt(v) is at most the ε of classes; or, for a class that stays near ε, |gap| - sqrt(v) is, with sqrt(v) at
// most ε/4.
//
// Second, QuietRows have come without another alarm, and the tests are less than half way to one. An error of twice the
// tolerance would have been found again. A fall of accuracy that the confidences show does not end so.
func (a *keyAlarm) cleared(s *spec) bool {
	if a.tests == nil {
		return false
	}
	return s.QuietRows > 0 && a.since.rows() >= float64(s.QuietRows) && a.quiet() || a.shown(s)
}

// shown is the first way of cleared.
func (a *keyAlarm) shown(s *spec) bool {
	sum, classes := make(detect.Pane, s.Bins), make(detect.Pane, a.classes)
	all := make(detect.Pane, s.Bins)
	for _, b := range a.since.blocks {
		plusPane(all, b.sums)
	}
	for i := len(a.since.blocks) - 1; i >= 0; i-- {
		plusPane(sum, a.since.blocks[i].sums)
		if a.classes > 0 { // its blocks are of the same panes
			plusPane(classes, a.sinceByClass.blocks[i].sums)
		}
		if sum.N() >= float64(max(s.ClearRows, 1)) && a.inside(sum, all, s.QuietRows) && a.classesInside(classes) {
			return true
		}
	}
	return false
}

// classesInside checks the classes that the test by class named.
func (a *keyAlarm) classesInside(p detect.Pane) bool {
	for k, b := range p {
		if a.off>>k&1 == 0 {
			continue
		}
		n := b.N()
		rate := (b.N1 + 1) / (n + 2)
		gap, se := math.Abs(b.N1-b.C1-b.C0)/n, math.Sqrt(rate*(1-rate)/n)
		epsilon := a.tests.Classes.Specification().Epsilon
		if !(gap+z95one*se <= epsilon || gap-se <= epsilon && se <= epsilon/4) {
			return false // without rows too
		}
	}
	return true
}

func (a *keyAlarm) quiet() bool {
	if a.hard != nil && a.hard.from != 0 { // a fall that the confidences show is not over
		return false
	}
	if a.slice {
		return a.logE() < 0
	}
	for _, d := range []*detect.Detector{a.tests.Headline, a.tests.Diagnosis, a.tests.Classes} {
		if d != nil && d.LogE() >= d.Threshold()/2 {
			return false
		}
	}
	return true
}

// z95one is the 95 % quantile of the standard normal distribution.
const z95one = 1.6448536269514722

// inside reports whether the rows of p are inside the tolerance, by the first way of cleared. all are those since the
// alarm.
func (a *keyAlarm) inside(p, all detect.Pane, quiet int64) bool {
	head := a.tests.Headline.Specification()
	if head.Null == detect.NullAccuracy {
		return a.accuracyInside(head, p)
	}
	e, rest := a.errorsOf(p), 0.0
	for j, b := range e.bins {
		switch share := b.W / e.rows; {
		case a.bins>>j&1 == 0:
		case b.W == 0 && a.emptied(j, e.rows) || b.W > 0 && a.binInside(j, e.gap(j), e.se[j], share):
		case b.W > 0 && a.negligible(quiet, share, e.gap(j)+z95one*e.se[j]-a.binTolerance(j)):
		case left(p, all, j):
			if b.W > 0 {
				rest += share * min(1, e.gap(j)+z95one*e.se[j])
			}
		default:
			return false
		}
	}
	return rest <= head.Epsilon/4 && e.ece+z95one*e.eceSE <= head.Epsilon
}

// negligible reports whether the error of a bin is one that cleared would drop as quiet: with a gap above its tolerance
// by excess, at most, its rows bring less than half of an alarm's evidence in QuietRows. A row brings about 2 excess².
func (a *keyAlarm) negligible(quietRows int64, share, excess float64) bool {
	excess = min(max(excess, 0), 1)
	return share*2*excess*excess*float64(quietRows) < a.tests.Diagnosis.Threshold()/2 && quietRows > 0
}

// left reports whether the rows have left bin j: p has at most a quarter of those that it would have by the bin's share
// of the rest of all, where both numbers are no chance. Of 20 that are expected 5 or fewer come once in 14,000 times.
func left(p, all detect.Pane, j int) bool {
	had, of := all[j].N()-p[j].N(), all.N()-p.N()
	if !(had >= leftFrom) {
		return false
	}
	expected := p.N() * had / of
	return expected >= leftFrom && p[j].N() <= expected/4
}

// leftFrom is the least number of rows that left judges by.
const leftFrom = 20

// paneErrors are the calibration errors of some rows with their standard errors, as cleared describes them.
type paneErrors struct {
	bins       []metric.Bin // in change mode with confidences as the reference curve corrects them
	se         []float64    // of the gaps of bins
	ece, eceSE float64
	rows       float64
}

func (e *paneErrors) gap(j int) float64 { return math.Abs(e.bins[j].Acc() - e.bins[j].Conf()) }

func (a *keyAlarm) errorsOf(p detect.Pane) paneErrors {
	e := paneErrors{bins: make([]metric.Bin, len(p)), se: make([]float64, len(p)), rows: p.N()}
	head, variance := a.tests.Headline.Specification(), 0.0
	for j, b := range p {
		n := b.N()
		if n == 0 {
			continue
		}
		beta := 0.0
		if head.Reference != nil {
			beta = head.Reference.Bias[j]
		}
		e.bins[j] = metric.Bin{N: max(1, int64(n)), W: n, SumC: b.C1 + b.C0 + beta*n, SumA: b.N1, W2: n}
		rate := (b.N1 + 1) / (n + 2)
		v := rate * (1 - rate) / n
		e.se[j] = math.Sqrt(v)
		variance += n / e.rows * n / e.rows * v
	}
	e.ece, e.eceSE = reference.DebiasedECE(e.bins), math.Sqrt(variance)
	return e
}

// binInside checks a bin that the diagnosis named.
func (a *keyAlarm) binInside(j int, gap, se, share float64) bool {
	head, tolerance := a.tests.Headline.Specification(), a.binTolerance(j)
	return gap <= tolerance && (se <= tolerance || share < head.Epsilon/2 && se <= 2*tolerance)
}

func (a *keyAlarm) binTolerance(j int) float64 {
	diag := a.tests.Diagnosis.Specification()
	if diag.Reference != nil {
		return diag.Epsilon + diag.Reference.Slack[j]
	}
	return diag.Epsilon
}

// emptied reports whether a bin that the diagnosis named has lost its rows: n rows without one of it, where there would
// be as many as were expected by its share of about 10,000 rows before, come by chance once in a thousand times.
func (a *keyAlarm) emptied(j int, n float64) bool {
	share := a.tests.Diagnosis.Share(j)
	return share == 0 || share*n >= goneFrom
}

// goneFrom is the number of expected rows from which none is no chance: e⁻⁷ is .0009.
const goneFrom = 7

func (t *trail) append(dst []byte) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(t.blocks)))
	for _, b := range t.blocks {
		dst = appendPane(binenc.AppendUvarint(dst, b.panes), b.sums)
	}
	return dst
}

func (t *trail) restore(r *binenc.Reader, bins int) {
	for range r.Count(2, 1<<8) {
		b := trailBlock{panes: r.Uvarint(), sums: restorePane(r, bins)}
		if r.Err() != nil {
			return
		}
		t.blocks = append(t.blocks, b)
	}
}
