package alert

import (
	"cmp"
	"fmt"

	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Stage settles the alerts of all versions of a task.
type Stage struct {
	env  *stage.Env
	hold int64
}

// New returns the stage. An alert stays inhibited for hold, in ns of event time, after its inhibitor is gone.
func New(env *stage.Env, hold int64) *Stage { return &Stage{env, hold} }

// candidate is an alert that could be the root, with its key.
type candidate struct {
	*stage.Alert
	key *stage.Key
}

// Settle decides at the end of a pane which alerts inhibit which, and publishes what changed. keys are all keys of one
// version, in order.
func (s *Stage) Settle(keys []*stage.Key, end int64) {
	var root *candidate // root of the whole version
	for _, k := range keys {
		if k.Slice == "" {
			root = rootOf(k)
			s.publish(k, root, nil, end)
		}
	}
	for _, k := range keys {
		if k.Slice != "" {
			s.publish(k, rootOf(k), root, end)
		}
	}
}

// rootOf returns the root alert of a key, from which the others are assumed to follow; nil if none fires.
func rootOf(k *stage.Key) *candidate {
	var best *candidate
	for _, a := range k.Alerts {
		a.Answered = answered(k, a)
		if a.State != stage.Firing || answeredBy(k, a) != "" {
			continue
		}
		if c := (&candidate{a, k}); best == nil || c.before(best) {
			best = c
		}
	}
	return best
}

// answered reports whether a calibrator has answered an alarm on raw confidences. If an alarm watches the calibrated
// confidences, any calibrator in force counts; otherwise it must have come after labels showed the error.
func answered(k *stage.Key, a *stage.Alert) bool {
	f := k.Version.Newest()
	if !a.Anytime || a.Signal != stage.SignalRaw || f == nil {
		return false
	}
	return watchesCalibrated(k) || f.From > cmp.Or(a.OverFrom, a.Since)
}

// watchesCalibrated reports whether the key has an alarm on the calibrated confidences.
func watchesCalibrated(k *stage.Key) bool {
	for _, a := range k.Alerts {
		if a.Anytime && a.Signal == stage.SignalCalibrated {
			return true
		}
	}
	return false
}

// answeredBy returns the name of the calibrator that inhibits an alarm, because another alarm watches that calibrator's
// output; "" if there is none.
func answeredBy(k *stage.Key, a *stage.Alert) string {
	if !a.Answered || !watchesCalibrated(k) {
		return ""
	}
	return fmt.Sprintf("calibrator %d", k.Version.Newest().Revision)
}

// publish sends the changes of a key. A change of the inhibitor counts as one.
func (s *Stage) publish(k *stage.Key, own, whole *candidate, end int64) {
	for _, a := range k.Alerts {
		if a.State == stage.Inactive && a.Change == nil {
			continue
		}
		by := s.inhibitor(candidate{a, k}, own, whole, end)
		switch {
		case a.Change != nil && a.Change.State == stage.Resolved:
			// Receivers that were notified of an alert also get its resolution.
			a.Change.InhibitedBy = a.InhibitedBy
			if a.Notified {
				a.Change.InhibitedBy = ""
			}
			s.send(k, a, a.Change, end)
			a.InhibitedBy, a.Notified, a.HoldFrom = "", false, 0
			continue
		case a.Change != nil:
			a.Change.InhibitedBy = by
			s.send(k, a, a.Change, end)
		case by != a.InhibitedBy:
			if a.Last.Record == nil {
				continue // the next change of the alert sets its inhibitor
			}
			last := *a.Last.Record
			last.InhibitedBy, last.At = by, record.At(end)
			if a.Refresh != nil {
				a.Refresh(&last, end)
			}
			s.send(k, a, &last, end)
		}
		a.InhibitedBy = by
		a.Notified = a.Notified || by == "" && a.State == stage.Firing
	}
}

// inhibitor returns the key of the alert, or the name of the calibrator, that inhibits a pending or firing alert; "" if
// nothing does.
func (s *Stage) inhibitor(c candidate, own, whole *candidate, end int64) string {
	if by := answeredBy(c.key, c.Alert); by != "" {
		c.HoldFrom = 0
		return by
	}
	for _, root := range []*candidate{whole, own} {
		if root != nil && root.Alert != c.Alert && root.Severity >= c.Severity &&
			(!root.OfAccuracy() || c.OfAccuracy()) {
			c.HoldFrom = 0
			return root.key.AlertKey(root.Rule)
		}
	}
	if c.InhibitedBy == "" {
		return ""
	}
	if c.HoldFrom == 0 {
		c.HoldFrom = end
	}
	if end-c.HoldFrom < s.hold {
		return c.InhibitedBy
	}
	c.HoldFrom = 0
	return ""
}

// before reports whether c takes precedence over o as root. An alarm on accuracy comes last, because a fall of accuracy
// explains no calibration error.
func (c *candidate) before(o *candidate) bool {
	if c.OfAccuracy() != o.OfAccuracy() {
		return o.OfAccuracy()
	}
	return cmp.Or(cmp.Compare(o.Severity, c.Severity), cmp.Compare(c.Order, o.Order)) < 0
}

// send publishes one alert and keeps it as the latest.
func (s *Stage) send(k *stage.Key, a *stage.Alert, out *record.Alert, end int64) {
	m, err := pipeline.NewMessage(pipeline.StreamAlerts, k.AlertKey(a.Rule), end, out)
	if err != nil {
		panic("alert: an alert does not marshal: " + err.Error())
	}
	a.Last = stage.NewLastAlert(out, m.Value)
	s.env.Emit(k, m)
}
