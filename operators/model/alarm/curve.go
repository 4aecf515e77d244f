package alarm

import (
	"math"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// alarmCurve holds the reference curve of the change mode: the curve in force, and the rows from which the next one is
// made. All panes of a curve come before the first pane that is compared with it.
type alarmCurve struct {
	inForce *detect.Reference // nil until there are enough rows
	next    detect.Pane
	// stretches are the rows of next in their order, of the alarm on accuracy: the last one is open.
	stretches []detect.Stretch
}

// A reference is cut into stretches stretches, of leastStretch rows or more.
const (
	stretches    = 40
	leastStretch = 50
)

func (s *spec) stretchRows() float64 { return max(leastStretch, float64(s.ReferenceRows)/stretches) }

func newAlarmCurve(bins int) *alarmCurve { return &alarmCurve{next: make(detect.Pane, bins)} }

// add takes a pane of a signal and reports whether a new curve is in force from this pane on.
func (c *alarmCurve) add(s *spec, signal string, p detect.Pane) (changed bool, err error) {
	kind := s.reference(signal)
	if c.inForce != nil && kind == Pinned {
		return false, nil
	}
	if c.next.N() >= float64(s.ReferenceRows) {
		if c.inForce, err = detect.ReferenceCurve(c.next, s.Slack); err != nil {
			return false, err
		}
		c.inForce.AccuracyDip = detect.Dip(c.stretches)
		changed = true
		c.begin(s)
	}
	if c.inForce == nil || kind == Rolling {
		plusPane(c.next, p)
		if signal == stage.SignalAccuracy {
			c.stretch(s.stretchRows(), p)
		}
	}
	return changed, nil
}

// stretch adds a pane to the open stretch, or begins another one after so many rows.
func (c *alarmCurve) stretch(rows float64, p detect.Pane) {
	last := len(c.stretches) - 1
	if last < 0 || c.stretches[last].N >= rows {
		c.stretches = append(c.stretches, detect.Stretch{})
		last++
	}
	open := &c.stretches[last]
	for _, b := range p {
		open.N, open.Right = open.N+b.N(), open.Right+b.N1
	}
}

// ended reports whether the pane that was just added has completed a stretch of the first reference.
func (c *alarmCurve) ended(s *spec) bool {
	last := len(c.stretches) - 1
	return c.inForce == nil && last >= 0 && c.stretches[last].N >= s.stretchRows()
}

// begin begins the next reference anew.
func (c *alarmCurve) begin(s *spec) { c.next, c.stretches = make(detect.Pane, s.Bins), nil }

func (c *alarmCurve) append(dst []byte) []byte {
	dst = append(dst, binenc.Flags(c.inForce != nil))
	if c.inForce != nil {
		for j := range c.inForce.Bias {
			dst = binenc.AppendFloat64s(dst, c.inForce.Bias[j], c.inForce.Slack[j])
		}
		dst = binenc.AppendFloat64s(dst, c.inForce.Accuracy, c.inForce.AccuracySlack, c.inForce.AccuracyDip)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(c.stretches)))
	for _, s := range c.stretches {
		dst = binenc.AppendFloat64s(dst, s.N, s.Right)
	}
	return appendPane(dst, c.next)
}

func (c *alarmCurve) restore(r *binenc.Reader, bins int) {
	if r.Byte() == 1 {
		c.inForce = &detect.Reference{Bias: make([]float64, bins), Slack: make([]float64, bins)}
		for j := range bins {
			b, s := r.Float64(), r.Float64()
			if !(math.Abs(b) <= 1 && s >= 0 && s <= 1) {
				r.Failf("reference curve of bin %d is %v, slack %v", j, b, s)
				return
			}
			c.inForce.Bias[j], c.inForce.Slack[j] = b, s
		}
		a, s, dip := r.Float64(), r.Float64(), r.Float64()
		if !(a >= 0 && a <= 1 && s >= 0 && s <= 1 && dip >= 0 && dip <= a) {
			r.Failf("reference accuracy is %v, slack %v, dip %v", a, s, dip)
			return
		}
		c.inForce.Accuracy, c.inForce.AccuracySlack, c.inForce.AccuracyDip = a, s, dip
	}
	for range r.Count(16, 2*stretches) {
		s := detect.Stretch{N: r.Float64(), Right: r.Float64()}
		if r.Err() == nil && !(s.Right >= 0 && s.N >= s.Right && s.N > 0) {
			r.Failf("stretch of %v rows, %v of them right", s.N, s.Right)
			return
		}
		c.stretches = append(c.stretches, s)
	}
	c.next = restorePane(r, bins)
}
