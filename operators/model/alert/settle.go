package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

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
	key   *stage.Key
	proof proof
}

// proof says what the rows that the newest calibrator serves show of an alarm.
type proof int

const (
	unasked proof = iota // no proof is needed, or the rows cannot tell
	awaited              // there is no such row, or they do not show the error
	given                // they show the error
)

// proofOf returns the proof of an alarm on calibrated confidences. If labels showed the error before the newest
// calibrator took force, the alarm says nothing of what is served since. One that is notified needs no proof.
func proofOf(k *stage.Key, a *stage.Alert) proof {
	f := k.Version.Newest()
	switch {
	case f == nil || a.State != stage.Firing || !onCalibrated(a) || f.From <= cmp.Or(a.OverFrom, a.Since),
		a.InhibitedBy == "" && a.Change == nil:
		return unasked
	case k.Since.Revision != f.Revision:
		return awaited
	case a.Persists == nil:
		return unasked
	case a.Persists():
		return given
	}
	return awaited
}

func onCalibrated(a *stage.Alert) bool { return a.Anytime && a.Signal == stage.SignalCalibrated }

// Settle decides at the end of a pane which alerts inhibit which, and publishes what changed. keys are all keys of one
// version, in order.
func (s *Stage) Settle(keys []*stage.Key, end int64) error {
	var whole group
	for _, k := range keys {
		if k.Slice == "" {
			whole = group{rootOf(k), sync.OnceValue(func() bool { return unmended(k) })}
			if err := s.publish(k, whole.root, group{}, end); err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		if k.Slice != "" {
			if err := s.publish(k, rootOf(k), whole, end); err != nil {
				return fmt.Errorf("slice %q: %w", k.Slice, err)
			}
		}
	}
	return nil
}

// group is what the whole version means to its slices.
type group struct {
	root     *candidate  // nil = none
	unmended func() bool // of the whole version; nil = there are no statistics of it
}

// unmended reports whether the rows of a whole version that the newest calibrator serves show an error.
func unmended(k *stage.Key) bool {
	return slices.ContainsFunc(k.Alerts, func(a *stage.Alert) bool {
		return onCalibrated(a) && a.Persists != nil && a.Persists()
	})
}

// rootOf returns the root alert of a key, from which the others are assumed to follow; nil if none fires.
func rootOf(k *stage.Key) *candidate {
	var best *candidate
	for _, a := range k.Alerts {
		a.Answered = answered(k, a)
		if a.State != stage.Firing || answeredBy(k, a) != "" {
			continue
		}
		if c := (&candidate{Alert: a, key: k}); best == nil || c.before(best) {
			best = c
		}
	}
	if best != nil {
		best.proof = proofOf(k, best.Alert)
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
		if onCalibrated(a) {
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
	return newest(k)
}

// newest returns the name of the newest calibrator.
func newest(k *stage.Key) string { return fmt.Sprintf("calibrator %d", k.Version.Newest().Revision) }

// publish sends the changes of a key. A change of the inhibitor counts as one.
func (s *Stage) publish(k *stage.Key, own *candidate, whole group, end int64) error {
	for _, a := range k.Alerts {
		if a.State == stage.Inactive && a.Change == nil {
			continue
		}
		by := s.inhibitor(candidate{a, k, proofOf(k, a)}, own, whole, end)
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
			last.At = record.At(end)
			if err := a.Refresh(&last, end); err != nil {
				return fmt.Errorf("alert %s: %w", a.Rule, err)
			}
			last.InhibitedBy = by
			s.send(k, a, &last, end)
		}
		a.InhibitedBy = by
		a.Notified = a.Notified || by == "" && a.State == stage.Firing
	}
	return nil
}

// inhibitor returns the key of the alert, or the name of the calibrator, that inhibits a pending or firing alert; "" if
// nothing does.
func (s *Stage) inhibitor(c candidate, own *candidate, whole group, end int64) string {
	if by := cmp.Or(c.key.Version.Silent, c.key.Silent, answeredBy(c.key, c.Alert)); by != "" {
		c.HoldFrom = 0
		return by
	}
	for _, root := range []*candidate{whole.root, own} {
		if root != nil && root.Alert != c.Alert && root.Severity >= c.Severity &&
			(!root.OfAccuracy() || c.OfAccuracy()) && !root.unproven(c) {
			c.HoldFrom = 0
			return root.key.AlertKey(root.Rule)
		}
	}
	switch {
	case c.InhibitedBy == "":
		return ""
	case c.proof == awaited:
		c.HoldFrom = 0
		return newest(c.key)
	case c.proof == given && (whole.unmended == nil || !whole.unmended()):
		c.HoldFrom = 0
		return "" // else it was not the calibrator that ended the inhibitor: the slice may be healing too
	case strings.HasPrefix(c.InhibitedBy, record.NoPredictions):
		return "" // the rows are back, perhaps for less than the hold
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

// unproven reports whether nobody has been notified of root c, because its proof is awaited, while o is an alarm on the
// same confidences that needs none or has it.
func (c *candidate) unproven(o candidate) bool {
	return c.InhibitedBy != "" && c.proof == awaited && onCalibrated(o.Alert) && o.proof != awaited
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
