package detect

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Null names what a detector takes for granted until the rows speak against it, with r = a - c, b_ij = E[r of row i |
// past, bin j] and β_j the reference curve, 0 unless set.
type Null uint8

const (
	// NullECE is Σ_j P(bin j | past)·|b_ij - β_j| ≤ ε for every row i: the binned ECE is at most ε.
	NullECE Null = iota
	// NullBin is |b_ij - β_j| ≤ ε for every row i and bin j: no bin is off by more than ε.
	NullBin
	// NullAccuracy is P(row i right | past) ≥ A - D - ε - κ for every row i, A, κ and D the accuracy of the reference,
	// its slack and its dip: accuracy is not below what it was at times in the reference window; confidences play no
	// part. It is one side of NullBin for a model that is always A - D sure.
	NullAccuracy
	// NullClass is |E[r of row i | past, predicted class k]| ≤ ε for every row i and class k: no predicted class is off
	// by more than ε. Neither NullECE nor NullBin says so, as errors of classes cancel. Its panes are by ClassCell.
	NullClass
)

func (n Null) String() string {
	switch n {
	case NullECE:
		return "ece"
	case NullBin:
		return "bin"
	case NullAccuracy:
		return "accuracy"
	case NullClass:
		return "class"
	}
	return fmt.Sprintf("Null(%d)", uint8(n))
}

// Defaults of a Spec: 15 bins, ε by null, one false alarm a year at panes of 10 s.
const (
	DefaultBins     = 15
	DefaultECE      = .02
	DefaultBin      = .05
	DefaultAccuracy = .02
	DefaultClass    = .1
	PanesPerYear10  = 3_150_000

	maxBins = 60
	// MaxClasses bounds K of NullClass.
	MaxClasses = maxBins
)

// Reference is the calibration curve that the change mode compares with, by bin: Bias[j] is β_j, mean a - c of the
// reference window. Slack[j] ≥ 0, if given, is added to the tolerance of bin j: what the curve may be off by itself.
// Accuracy, its slack and AccuracyDip, how far below Accuracy it was at times (Dip), are for NullAccuracy, which needs
// nothing else.
type Reference struct {
	Bias, Slack                          []float64
	Accuracy, AccuracySlack, AccuracyDip float64
}

// Level returns the accuracy that NullAccuracy compares with, A - D.
func (r *Reference) Level() float64 { return r.Accuracy - r.AccuracyDip }

// Spec is the specification of a detector. Zero values stand for the defaults.
type Spec struct {
	Null    Null
	Bins    int     // M, a divisor of 3600, 2 to 60; default 15. Of NullClass K, 2 to 60
	Epsilon float64 // tolerance, in (0, .5]; default .02, for NullBin .05, for NullClass .1
	// Alpha is 1/(least average number of panes to a false alarm), in (0, 1); default 1/3,150,000. With Ever it is the
	// probability that there ever is a false alarm.
	Alpha float64
	// Ever weighs pane t by 1/(t(t+1)): P(ever a false alarm) ≤ α, at the price of slower alarms as time goes by. The
	// sum is then an e-value at every time (what e-BH needs); it is not put back to 0 by an alarm.
	Ever      bool
	Reference *Reference
}

// withDefaults returns s with defaults filled in, or ErrSpec.
func (s Spec) withDefaults() (Spec, error) {
	if s.Null > NullClass {
		return s, fmt.Errorf("null is %d, allowed 0 to 3: %w", s.Null, ErrSpec)
	}
	if s.Bins == 0 {
		s.Bins = DefaultBins
	}
	if s.Bins < 2 || s.Bins > maxBins || s.Null != NullClass && acc.GridCells%s.Bins != 0 {
		return s, fmt.Errorf("bins is %d, allowed the divisors of %d from 2 to %d: %w", s.Bins, acc.GridCells, maxBins,
			ErrSpec)
	}
	if s.Epsilon == 0 {
		s.Epsilon = [...]float64{NullECE: DefaultECE, NullBin: DefaultBin, NullAccuracy: DefaultAccuracy,
			NullClass: DefaultClass}[s.Null]
	}
	if !(s.Epsilon > 0 && s.Epsilon <= .5) {
		return s, fmt.Errorf("epsilon is %v, allowed above 0 to 0.5: %w", s.Epsilon, ErrSpec)
	}
	if s.Alpha == 0 {
		s.Alpha = 1.0 / PanesPerYear10
	}
	if !(s.Alpha >= 1e-300 && s.Alpha < 1) {
		return s, fmt.Errorf("alpha is %v, allowed 1e-300 to below 1: %w", s.Alpha, ErrSpec)
	}
	if s.Null == NullAccuracy {
		return s, s.Reference.checkAccuracy()
	}
	if s.Null == NullClass && s.Reference != nil {
		return s, fmt.Errorf("null class with a reference: %w", ErrSpec)
	}
	return s, s.Reference.check(s.Bins)
}

func (r *Reference) checkAccuracy() error {
	if r == nil {
		return fmt.Errorf("null accuracy without a reference: %w", ErrSpec)
	}
	if !(r.Accuracy >= 0 && r.Accuracy <= 1 && r.AccuracySlack >= 0 && r.AccuracySlack <= 1) {
		return fmt.Errorf("accuracy of the reference is %v with a slack of %v, allowed 0 to 1: %w", r.Accuracy,
			r.AccuracySlack, ErrSpec)
	}
	if !(r.AccuracyDip >= 0 && r.AccuracyDip <= r.Accuracy) {
		return fmt.Errorf("dip of the reference's accuracy is %v, allowed 0 to the accuracy, %v: %w", r.AccuracyDip,
			r.Accuracy, ErrSpec)
	}
	return nil
}

func (r *Reference) check(bins int) error {
	if r == nil {
		return nil
	}
	if len(r.Bias) != bins {
		return fmt.Errorf("reference has %d bins, the detector %d: %w", len(r.Bias), bins, ErrSpec)
	}
	if r.Slack != nil && len(r.Slack) != bins {
		return fmt.Errorf("slack of the reference has %d bins, the detector %d: %w", len(r.Slack), bins, ErrSpec)
	}
	for j, b := range r.Bias {
		if !(math.Abs(b) <= 1) {
			return fmt.Errorf("reference bias of bin %d is %v, allowed -1 to 1: %w", j, b, ErrSpec)
		}
	}
	for j, s := range r.Slack {
		if !(s >= 0 && s <= 1) {
			return fmt.Errorf("reference slack of bin %d is %v, allowed 0 to 1: %w", j, s, ErrSpec)
		}
	}
	return nil
}

// fingerprint distinguishes specifications: state of one is nothing to another.
func (s Spec) fingerprint() uint64 {
	b := []byte{DictionaryVersion, byte(s.Null), byte(s.Bins), 0}
	if s.Ever {
		b[3] = 1
	}
	b = binenc.AppendFloat64s(b, s.Epsilon, s.Alpha)
	switch {
	case s.Null == NullAccuracy:
		b = binenc.AppendFloat64s(b, s.Reference.Level(), s.Reference.AccuracySlack)
	case s.Reference != nil:
		b = binenc.AppendFloat64s(binenc.AppendFloat64s(b, s.Reference.Bias...), s.Reference.Slack...)
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}
