package operators

import (
	"math"

	"github.com/plumbline/plumbline/calib/detect"
	"github.com/plumbline/plumbline/internal/binenc"
)

// alarmCurve is the reference curve of the change mode: that in force, and the rows of which the next one is made. A curve
// is of panes that all come before the first one that it judges.
type alarmCurve struct {
	inForce *detect.Reference // nil until there are rows enough
	next    detect.Pane
}

func newAlarmCurve(bins int) *alarmCurve { return &alarmCurve{next: make(detect.Pane, bins)} }

// add takes a pane and reports whether another curve is in force for it and what follows.
func (c *alarmCurve) add(s *AlarmSpec, p detect.Pane) (changed bool) {
	if c.inForce != nil && s.Reference == refPinned {
		return false
	}
	if c.next.N() >= float64(s.ReferenceRows) {
		c.inForce, changed = curveOf(c.next, s.Slack), true
		c.next = make(detect.Pane, s.Bins)
	}
	if c.inForce == nil || s.Reference == refRolling {
		plusPane(c.next, p)
	}
	return changed
}

// curveOf returns the mean a - c of every bin, 0 where it has no rows, and z standard errors of it as slack:
//
//	β_j = (N1 - C1 - C0)/n,   κ_j = z·sqrt(p(1-p)/n),   p = (N1 + 1)/(n + 2),   n = N1 + N0
//
// Without rows κ_j = 1: such a bin says nothing.
func curveOf(p detect.Pane, z float64) *detect.Reference {
	ref := &detect.Reference{Bias: make([]float64, len(p)), Slack: make([]float64, len(p))}
	for j, b := range p {
		n := b.N()
		if n == 0 {
			ref.Slack[j] = 1
			continue
		}
		rate := (b.N1 + 1) / (n + 2)
		ref.Bias[j] = min(1, max(-1, (b.N1-b.C1-b.C0)/n))
		ref.Slack[j] = min(1, z*math.Sqrt(rate*(1-rate)/n))
	}
	return ref
}

func (c *alarmCurve) append(dst []byte) []byte {
	dst = append(dst, bits(c.inForce != nil))
	if c.inForce != nil {
		for j := range c.inForce.Bias {
			dst = binenc.AppendFloat64(binenc.AppendFloat64(dst, c.inForce.Bias[j]), c.inForce.Slack[j])
		}
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
	}
	c.next = restorePane(r, bins)
}
