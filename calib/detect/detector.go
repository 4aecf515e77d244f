package detect

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/internal/vexp"
)

// Detector is the sequential test of one null for one key: a Shiryaev–Roberts sum of e-values over a dictionary of
// betting experts. At the close of a pane, for every expert k with log e-value L_k,
//
//	R_k ← (R_k + 1[some row in a bin where k bets])·exp(L_k),   alarm when Σ_k w_k R_k ≥ 1/α, and then all R ← 0
//
// Under the null E[false alarms by pane t] ≤ α·t for every t, whatever the panes are (docs/math.md).
// State is 24 bytes an expert and 48 a bin: 2.9 KB for NullBin, 1.1 KB for NullECE; encoded 3.4 KB for both together.
// Of NullClass it is 96 bytes a class: 1 KB for 10 classes, 5.8 KB for 60.
type Detector struct {
	dict  *dictionary
	state []expertState
	past  memory
	panes int64   // panes with rows so far: t of the weights 1/(t(t+1))
	last  int64   // id of the last pane
	fired int64   // alarms so far
	lower float64 // of Lower; not part of the state

	scratch            // while a pane is observed
	flat    [1]BinSums // scratch of NullAccuracy: the pane in one bin
}

// scratch is what the update of a pane needs.
type scratch struct {
	logE   []float64 // L_k of the pane
	growth []float64 // e^L_k
	chords []chord
}

// expertState is what an expert has won.
type expertState struct {
	wealth wealth  // R_k
	cusum  float64 // max(0, cusum + L): the evidence since the likeliest start
	since  int64   // id of the last pane at which cusum was 0, or of the first pane of all
}

// New returns a detector without any rows; ErrSpec where the specification is out of range. Detectors of the
// same specification should be made by Fresh of the first one: they share the dictionary.
func New(s Spec) (*Detector, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	return newDetector(newDictionary(s)), nil
}

func newDetector(dict *dictionary) *Detector {
	d := &Detector{dict: dict, state: make([]expertState, len(dict.experts)), past: newMemory(dict),
		last: math.MinInt64}
	d.clear()
	return d
}

// Fresh returns another detector of the same specification, without any rows.
func (d *Detector) Fresh() *Detector { return newDetector(d.dict) }

// Specification returns the specification, defaults filled in.
func (d *Detector) Specification() Spec { return d.dict.spec }

// clear puts all R and cusums to 0.
func (d *Detector) clear() {
	for k := range d.state {
		d.state[k] = expertState{since: d.last}
	}
}

// Observe takes the sums of the next pane. id names the pane (its number or start time) and must not decrease; it is
// only given back by Evidence. The evidence is nil unless this pane raised an alarm, which puts the detector back to
// its start (with Ever: an alarm at every pane from then on that is still over). On ErrPane the detector is as it was.
func (d *Detector) Observe(id int64, p Pane) (*Evidence, error) {
	if err := p.check(d.dict.spec); err != nil {
		return nil, err
	}
	if id < d.last {
		return nil, fmt.Errorf("pane %d after pane %d: %w", id, d.last, ErrPane)
	}
	if d.last == math.MinInt64 {
		for k := range d.state {
			d.state[k].since = id
		}
	}
	d.last = id
	if d.dict.spec.Null == NullAccuracy {
		d.flat[0] = p.flat(d.dict.spec.Reference.Level() - d.lower)
		p = d.flat[:]
	}
	var active uint64
	for j, b := range p {
		if b.N() > 0 {
			active |= 1 << (j / d.dict.spec.cells())
		}
	}
	if active == 0 {
		return nil, nil
	}
	d.panes++
	s := d.dict.borrow()
	d.scratch = *s
	d.update(p, active)
	d.scratch = scratch{}
	d.dict.spare.Put(s)
	if d.dict.spec.Null == NullClass {
		p = p.ByClass()
	}
	d.past.add(p, p.N())
	if d.LogE() < d.Threshold() {
		return nil, nil
	}
	d.fired++
	e := d.Current()
	if !d.dict.spec.Ever {
		d.clear()
	}
	return e, nil
}

// Lower lets NullAccuracy compare the panes from now on with a level that is lower by so much, 0 to the level itself:
//
//	P(row i right | past) ≥ A - D - lower - ε - κ
//
// The stakes are the best ones there. If by is known before the outcomes of a pane, bets are fair under that, and all
// the more under the null itself. It is not part of the state.
func (d *Detector) Lower(by float64) {
	if !(by >= 0 && d.dict.spec.Null == NullAccuracy && by <= d.dict.spec.Reference.Level()) {
		panic(fmt.Sprintf("detect: the level of null %s lowered by %v", d.dict.spec.Null, by))
	}
	d.lower = by
}

// update moves every R and cusum by the e-values of the pane.
func (d *Detector) update(p Pane, active uint64) {
	inject := 1.0 // what a pane adds to R
	if d.dict.spec.Ever {
		t := float64(d.panes)
		inject = 1 / t / (t + 1)
	}
	top := math.Inf(-1)
	for k := range d.dict.experts {
		l, bets := d.expertLogE(&d.dict.experts[k], p, active)
		if !bets {
			l = math.NaN() // its R stays: nothing was bet
		}
		d.logE[k] = l
		if l > top {
			top = l
		}
	}
	d.exponentials(top)
	for k, l := range d.logE {
		s := &d.state[k]
		if !math.IsNaN(l) {
			s.wealth = s.wealth.bet(inject, d.growth[k], l)
			s.cusum += l
		}
		if s.cusum <= 0 {
			s.cusum, s.since = 0, d.last
		}
	}
}

// exponentials puts e^L into growth, all at once where none is too large for that.
func (d *Detector) exponentials(top float64) {
	if top >= wealthTop {
		for k, l := range d.logE {
			d.growth[k] = math.Exp(l)
		}
		return
	}
	vexp.Shifted(d.growth, d.logE, top)
	scale := math.Exp(top)
	for k := range d.growth {
		d.growth[k] *= scale
	}
}

// expertLogE returns the log e-value of a pane, and whether any of its rows was in a bin with a bet.
func (d *Detector) expertLogE(x *expert, p Pane, active uint64) (l float64, bets bool) {
	switch x.kind {
	case Local:
		if active&x.bets == 0 {
			return 0, false
		}
		for i, c := range x.chords {
			l += c.logE(p[x.bin*len(x.chords)+i])
		}
		return l, true
	case Adaptive:
		if d.dict.spec.Null != NullECE {
			d.dict.adaptiveBin(d.lowered(), d.chords, d.past[x.half], active)
		} else {
			d.dict.adaptiveECE(d.chords, d.past[x.half], active, x.shy)
		}
		for j, c := range d.chords {
			if c != (chord{}) {
				l += c.logE(p[j])
				bets = true
			}
		}
		return l, bets
	}
	if d.lower > 0 {
		b := d.lowered()[0]
		return b.fallChord(d.dict.spec.Epsilon, x.excess).logE(p[0]), true
	}
	for rest := active & x.bets; rest != 0; rest &= rest - 1 {
		j := bits.TrailingZeros64(rest)
		l += x.chords[j].logE(p[j])
		bets = true
	}
	return l, bets
}

// lowered returns the bins that the pane is compared with.
func (d *Detector) lowered() []bin {
	if d.lower == 0 {
		return d.dict.bins
	}
	return []bin{accuracyBin(d.dict.spec, d.lower)}
}

// Threshold returns log(1/α).
func (d *Detector) Threshold() float64 { return -math.Log(d.dict.spec.Alpha) }

// LogE returns log Σ_k w_k R_k, -Inf before any bet; an alarm puts it back to -Inf unless Ever is set. With Ever its
// exponential is an e-value at every (stopping) time.
func (d *Detector) LogE() float64 {
	var sum float64
	for k := range d.state {
		w := d.state[k].wealth
		if w < 0 {
			return d.logSum()
		}
		sum += d.dict.weights[k] * float64(w)
	}
	return math.Log(sum)
}

// logSum is LogE where an R is too large to be summed as it is.
func (d *Detector) logSum() float64 {
	top := math.Inf(-1)
	for k := range d.state {
		top = max(top, d.state[k].wealth.log()+d.dict.experts[k].logWeight)
	}
	var sum float64
	for k := range d.state {
		sum += math.Exp(d.state[k].wealth.log() + d.dict.experts[k].logWeight - top)
	}
	return top + math.Log(sum)
}

// Panes returns the number of panes with rows so far.
func (d *Detector) Panes() int64 { return d.panes }
