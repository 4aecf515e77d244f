package detect

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

// AlarmSpec is the specification of an Alarm. Zero values stand for the defaults.
type AlarmSpec struct {
	Bins       int        // M of both; default 15
	EpsilonECE float64    // tolerance of the headline; default .02 (.01 for keys that matter)
	EpsilonBin float64    // tolerance of the diagnosis; default .05
	Alpha      float64    // of both together; default 1/3,150,000, one false alarm a year at panes of 10 s
	Headline   float64    // the share of Alpha that goes to the headline, in (0, 1); default ½
	Ever       bool       // as in Spec
	Reference  *Reference // nil: calibration itself; else change against this curve

	// Classes asks for a third test, NullClass of so many classes, at classShare of Alpha; 0 for none. It needs Ever
	// and Reference unset.
	Classes      int
	EpsilonClass float64 // its tolerance; default .1

	// Accuracy asks for one test in the place of both, NullAccuracy at all of Alpha: a fall of accuracy by more than
	// EpsilonAccuracy, default .02, from that of Reference, which it needs.
	Accuracy        bool
	EpsilonAccuracy float64
}

// Alarm is the headline test on ECE (NullECE) beside the diagnosis by bin (NullBin), for one key; or the headline is
// NullAccuracy, and Diagnosis is nil. Classes is the test by predicted class, nil unless asked for. Together they have
// E[false alarms by pane t] ≤ α·t, each counted once.
type Alarm struct{ Headline, Diagnosis, Classes *Detector }

// classShare is the share of Alpha that the test by class has, if there is one. The others become slower by
// ln(1/(1 - classShare)) of about 17 nats, 1.3 %.
const classShare = .2

// NewAlarm returns an alarm without any rows; ErrSpec where the specification is out of range.
func NewAlarm(s AlarmSpec) (*Alarm, error) {
	if s.Alpha == 0 {
		s.Alpha = 1.0 / PanesPerYear10
	}
	if s.Accuracy {
		d, err := New(Spec{Null: NullAccuracy, Bins: s.Bins, Epsilon: s.EpsilonAccuracy, Alpha: s.Alpha, Ever: s.Ever,
			Reference: s.Reference})
		if err != nil {
			return nil, fmt.Errorf("accuracy: %w", err)
		}
		return &Alarm{Headline: d}, nil
	}
	if s.Headline == 0 {
		s.Headline = .5
	}
	if !(s.Headline > 0 && s.Headline < 1) {
		return nil, fmt.Errorf("share of the headline is %v, allowed between 0 and 1: %w", s.Headline, ErrSpec)
	}
	classes, err := newClasses(s)
	if err != nil {
		return nil, err
	}
	if classes != nil {
		s.Alpha *= 1 - classShare
	}
	head, err := New(Spec{Null: NullECE, Bins: s.Bins, Epsilon: s.EpsilonECE, Alpha: s.Alpha * s.Headline, Ever: s.Ever,
		Reference: s.Reference})
	if err != nil {
		return nil, fmt.Errorf("headline: %w", err)
	}
	diag, err := New(Spec{Null: NullBin, Bins: s.Bins, Epsilon: s.EpsilonBin, Alpha: s.Alpha * (1 - s.Headline),
		Ever: s.Ever, Reference: s.Reference})
	if err != nil {
		return nil, fmt.Errorf("diagnosis: %w", err)
	}
	return &Alarm{head, diag, classes}, nil
}

// newClasses returns the test by class that s asks for, or nil.
func newClasses(s AlarmSpec) (*Detector, error) {
	if s.Classes == 0 {
		return nil, nil
	}
	if s.Ever || s.Reference != nil {
		return nil, fmt.Errorf("test by class with ever or a reference: %w", ErrSpec)
	}
	d, err := New(Spec{Null: NullClass, Bins: s.Classes, Epsilon: s.EpsilonClass, Alpha: s.Alpha * classShare})
	if err != nil {
		return nil, fmt.Errorf("classes: %w", err)
	}
	return d, nil
}

// Bins returns M.
func (a *Alarm) Bins() int { return a.Headline.dict.spec.Bins }

// Fresh returns another alarm of the same specification, without any rows; they share the dictionaries.
func (a *Alarm) Fresh() *Alarm {
	f := &Alarm{Headline: a.Headline.Fresh()}
	if a.Diagnosis != nil {
		f.Diagnosis = a.Diagnosis.Fresh()
	}
	if a.Classes != nil {
		f.Classes = a.Classes.Fresh()
	}
	return f
}

// LogE returns the logarithm of the mean of the tests' Σ w R; with Ever its exponential is an e-value at every time.
func (a *Alarm) LogE() float64 {
	x := a.Headline.LogE()
	if a.Diagnosis == nil {
		return x
	}
	y := a.Diagnosis.LogE()
	if x < y {
		x, y = y, x
	}
	if math.IsInf(x, -1) {
		return x
	}
	return x + math.Log1p(math.Exp(y-x)) - math.Ln2
}

// Fired is what an alarm shows: the evidence of its tests at the pane where at least one of them fired.
type Fired struct {
	Headline, Diagnosis, Classes *Evidence // nil where there is no such test
	ECE, Bin, Accuracy, Class    bool      // which of them fired
}

// Current returns what speaks against the nulls so far. The test with more evidence is named as the one that fired.
func (a *Alarm) Current() *Fired {
	f := &Fired{Headline: a.Headline.Current()}
	if a.Diagnosis == nil {
		f.Accuracy = true
		return f
	}
	f.Diagnosis = a.Diagnosis.Current()
	f.ECE = f.Headline.LogE >= f.Diagnosis.LogE
	f.Bin = !f.ECE
	return f
}

// Observe takes the sums of the next pane, as Detector.Observe does, by bin and, for the test by class, of the same
// rows by ClassCell. The result is nil unless an alarm was raised; each test goes back to its start after an alarm of
// its own only.
func (a *Alarm) Observe(id int64, p, classes Pane) (*Fired, error) {
	if a.Classes == nil {
		return a.observe(id, p)
	}
	if err := classes.check(a.Classes.dict.spec); err != nil {
		return nil, fmt.Errorf("classes: %w", err)
	}
	f, err := a.observe(id, p)
	if err != nil {
		return nil, err
	}
	class, err := a.Classes.Observe(id, classes) // checked above
	if err != nil || class == nil && f == nil {
		return nil, err
	}
	if f == nil {
		f = &Fired{Headline: a.Headline.Current(), Diagnosis: a.Diagnosis.Current()}
	}
	if f.Classes, f.Class = class, class != nil; class == nil {
		f.Classes = a.Classes.Current()
	}
	return f, nil
}

// observe gives the pane to the tests by bin.
func (a *Alarm) observe(id int64, p Pane) (*Fired, error) {
	head, err := a.Headline.Observe(id, p)
	if err != nil {
		return nil, err
	}
	if a.Diagnosis == nil {
		if head == nil {
			return nil, nil
		}
		return &Fired{Headline: head, Accuracy: true}, nil
	}
	diag, err := a.Diagnosis.Observe(id, p) // the same checks: it cannot fail where the first did not
	if err != nil {
		return nil, err
	}
	if head == nil && diag == nil {
		return nil, nil
	}
	f := &Fired{Headline: head, Diagnosis: diag, ECE: head != nil, Bin: diag != nil}
	if head == nil {
		f.Headline = a.Headline.Current()
	}
	if diag == nil {
		f.Diagnosis = a.Diagnosis.Current()
	}
	return f, nil
}

// AppendBinary appends the state of the tests, each with its length before it; that of a diagnosis that is not there is
// empty, that of a test by class left out.
func (a *Alarm) AppendBinary(b []byte) ([]byte, error) {
	b, err := binenc.AppendBlock(b, a.Headline.AppendBinary)
	if err != nil || a.Diagnosis == nil {
		return binenc.AppendBytes(b, nil), err
	}
	b, err = binenc.AppendBlock(b, a.Diagnosis.AppendBinary)
	if err != nil || a.Classes == nil {
		return b, err
	}
	return binenc.AppendBlock(b, a.Classes.AppendBinary)
}

// maxState bounds the encoded state of one test.
const maxState = 1 << 16

// UnmarshalBinary replaces the state by the encoded one, of the same specification; after an error (ErrCorrupt) it is
// as it was.
func (a *Alarm) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	head, diag := r.Bytes(maxState), r.Bytes(maxState)
	var classes []byte
	if a.Classes != nil {
		classes = r.Bytes(maxState)
	}
	if a.Diagnosis == nil && len(diag) > 0 {
		r.Failf("state of a diagnosis of %d bytes in that of an alarm on accuracy", len(diag))
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode alarm: %w", err)
	}
	n := a.Fresh()
	if err := n.Headline.UnmarshalBinary(head); err != nil {
		return fmt.Errorf("headline: %w", err)
	}
	if n.Diagnosis != nil {
		if err := n.Diagnosis.UnmarshalBinary(diag); err != nil {
			return fmt.Errorf("diagnosis: %w", err)
		}
	}
	if n.Classes != nil {
		if err := n.Classes.UnmarshalBinary(classes); err != nil {
			return fmt.Errorf("classes: %w", err)
		}
	}
	*a = *n
	return nil
}
