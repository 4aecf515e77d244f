package detect

import (
	"fmt"

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
}

// Alarm is the headline test on ECE (NullECE) beside the diagnosis by bin (NullBin), for one key. Together they have
// E[false alarms by pane t] ≤ α·t, each counted once.
type Alarm struct{ Headline, Diagnosis *Detector }

// NewAlarm returns an alarm without any rows; ErrSpec where the specification is out of range.
func NewAlarm(s AlarmSpec) (*Alarm, error) {
	if s.Alpha == 0 {
		s.Alpha = 1.0 / PanesPerYear10
	}
	if s.Headline == 0 {
		s.Headline = .5
	}
	if !(s.Headline > 0 && s.Headline < 1) {
		return nil, fmt.Errorf("share of the headline is %v, allowed between 0 and 1: %w", s.Headline, ErrSpec)
	}
	head, err := New(Spec{Null: NullECE, Bins: s.Bins, Epsilon: s.EpsilonECE, Alpha: s.Alpha * s.Headline, Ever: s.Ever, Reference: s.Reference})
	if err != nil {
		return nil, fmt.Errorf("headline: %w", err)
	}
	diag, err := New(Spec{Null: NullBin, Bins: s.Bins, Epsilon: s.EpsilonBin, Alpha: s.Alpha * (1 - s.Headline), Ever: s.Ever, Reference: s.Reference})
	if err != nil {
		return nil, fmt.Errorf("diagnosis: %w", err)
	}
	return &Alarm{head, diag}, nil
}

// Bins returns M.
func (a *Alarm) Bins() int { return a.Headline.dict.spec.Bins }

// Fresh returns another alarm of the same specification, without any rows; they share the dictionaries.
func (a *Alarm) Fresh() *Alarm { return &Alarm{a.Headline.Fresh(), a.Diagnosis.Fresh()} }

// Fired is what an alarm shows: the evidence of both tests at the pane where at least one of them fired.
type Fired struct {
	Headline, Diagnosis *Evidence
	ECE, Bin            bool // which of them fired
}

// Observe takes the sums of the next pane, as Detector.Observe does. The result is nil unless an alarm was raised; each
// test goes back to its start after an alarm of its own only.
func (a *Alarm) Observe(id int64, p Pane) (*Fired, error) {
	head, err := a.Headline.Observe(id, p)
	if err != nil {
		return nil, err
	}
	diag, err := a.Diagnosis.Observe(id, p) // the same checks: it cannot fail where the first did not
	if err != nil {
		return nil, err
	}
	if head == nil && diag == nil {
		return nil, nil
	}
	f := &Fired{head, diag, head != nil, diag != nil}
	if head == nil {
		f.Headline = a.Headline.Evidence()
	}
	if diag == nil {
		f.Diagnosis = a.Diagnosis.Evidence()
	}
	return f, nil
}

// AppendBinary appends the state of both tests, each with its length before it.
func (a *Alarm) AppendBinary(b []byte) ([]byte, error) {
	b, err := binenc.AppendBlock(b, a.Headline.AppendBinary)
	if err != nil {
		return b, err
	}
	return binenc.AppendBlock(b, a.Diagnosis.AppendBinary)
}

// maxState bounds the encoded state of one test.
const maxState = 1 << 16

// UnmarshalBinary replaces the state by the encoded one, of the same specification; after an error (ErrCorrupt) it is as it was.
func (a *Alarm) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	head, diag := r.Bytes(maxState), r.Bytes(maxState)
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode alarm: %w", err)
	}
	n := a.Fresh()
	if err := n.Headline.UnmarshalBinary(head); err != nil {
		return fmt.Errorf("headline: %w", err)
	}
	if err := n.Diagnosis.UnmarshalBinary(diag); err != nil {
		return fmt.Errorf("diagnosis: %w", err)
	}
	*a = *n
	return nil
}
