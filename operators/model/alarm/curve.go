package alarm

import (
	"math"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
)

// alarmCurve holds the reference curve of the change mode: the curve in force, and the rows from which the next one is
// made. All panes of a curve come before the first pane that is compared with it.
type alarmCurve struct {
	inForce *detect.Reference // nil until there are enough rows
	next    detect.Pane
}

func newAlarmCurve(bins int) *alarmCurve { return &alarmCurve{next: make(detect.Pane, bins)} }

// add takes a pane and reports whether a new curve is in force from this pane on.
func (c *alarmCurve) add(s *spec, kind string, p detect.Pane) (changed bool, err error) {
	if c.inForce != nil && kind == Pinned {
		return false, nil
	}
	if c.next.N() >= float64(s.ReferenceRows) {
		if c.inForce, err = detect.ReferenceCurve(c.next, s.Slack); err != nil {
			return false, err
		}
		changed = true
		c.next = make(detect.Pane, s.Bins)
	}
	if c.inForce == nil || kind == Rolling {
		plusPane(c.next, p)
	}
	return changed, nil
}

func (c *alarmCurve) append(dst []byte) []byte {
	dst = append(dst, binenc.Flags(c.inForce != nil))
	if c.inForce != nil {
		for j := range c.inForce.Bias {
			dst = binenc.AppendFloat64(binenc.AppendFloat64(dst, c.inForce.Bias[j]), c.inForce.Slack[j])
		}
		dst = binenc.AppendFloat64(binenc.AppendFloat64(dst, c.inForce.Accuracy), c.inForce.AccuracySlack)
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
		a, s := r.Float64(), r.Float64()
		if !(a >= 0 && a <= 1 && s >= 0 && s <= 1) {
			r.Failf("reference accuracy is %v, slack %v", a, s)
			return
		}
		c.inForce.Accuracy, c.inForce.AccuracySlack = a, s
	}
	c.next = restorePane(r, bins)
}
