package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// One alert is told, not one for each rule that sees the same thing. Of what fires for a whole model version, the root is
// the most severe; of equals the anytime alarm on raw, that on calibrated, then the rules in their order, and a fall of accuracy last: it
// may follow from any of them. It inhibits what else is pending or fires, for the whole and for its slices, unless that is more severe. Where
// nothing fires for the whole, each slice has its own root.
//
// The alarm on raw confidences is no root while a calibrator is in force and an alarm watches what it makes of
// them: that calibrator inhibits it. What was inhibited stays so for Hold after its inhibitor is gone, as rules that look
// back further resolve later.

// standing is one rule or alarm of a key in the order of who may be the root.
type standing struct {
	k        *keyState
	r        *stage.AlertState
	a        *keyAlarm // nil for a rule
	name     string
	severity int
	order    int
	change   *record.Alert // of this pane
}

var severities = []string{"info", "warning", "critical"}

// standings lists alarms and rules of a key.
func (t *ModelTask) standings(k *keyState) []standing {
	var out []standing
	for i, a := range k.alarms {
		out = append(out, standing{k: k, r: &a.alert, a: a, name: t.cfg.Alarm.rule(a.signal), severity: slices.Index(severities, t.cfg.Alarm.severity(a.signal)), order: i})
	}
	for i := range k.rules {
		spec := &t.cfg.Rules[i]
		out = append(out, standing{k: k, r: &k.rules[i], name: spec.Name, severity: slices.Index(severities, spec.Severity), order: len(k.alarms) + i})
	}
	for i := range out {
		out[i].change = k.changes[out[i].r]
	}
	return out
}

// settle decides who inhibits whom at a pane's end, and publishes what changed.
func (t *ModelTask) settle(v *version, names []string, end int64) {
	var whole *standing
	if k := v.keys[""]; k != nil {
		all := t.standings(k)
		whole = t.root(v, all)
		t.publish(v, all, whole, nil, end)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		all := t.standings(v.keys[name])
		t.publish(v, all, t.root(v, all), whole, end)
	}
}

// root returns the alert of a key that the others follow from; nil where none fires.
func (t *ModelTask) root(v *version, all []standing) *standing {
	var best *standing
	for i := range all {
		s := &all[i]
		if s.a != nil {
			s.a.answered = answered(v, s.k, s.a)
		}
		if s.r.State != stage.Firing || t.answeredBy(v, s) != "" {
			continue
		}
		if best == nil || s.before(best) {
			best = s
		}
	}
	return best
}

// answered reports whether a calibrator has answered an alarm on raw confidences: one in force, where an alarm watches what it
// makes of them, else one that came after the error began.
func answered(v *version, k *keyState, a *keyAlarm) bool {
	f := v.Newest()
	if a.signal != stage.SignalRaw || f == nil {
		return false
	}
	return k.alarm(stage.SignalCalibrated) != nil || f.From > a.alert.Since
}

// answeredBy is who inhibits an alarm that a calibrator answers and another alarm goes on from; "" for all others.
func (t *ModelTask) answeredBy(v *version, s *standing) string {
	if s.a == nil || !s.a.answered || s.k.alarm(stage.SignalCalibrated) == nil {
		return ""
	}
	return fmt.Sprintf("calibrator %d", v.Newest().Revision)
}

// publish sends the changes of a key, those of who inhibits among them.
func (t *ModelTask) publish(v *version, all []standing, own, whole *standing, end int64) {
	for i := range all {
		s := &all[i]
		if s.r.State == stage.Inactive && s.change == nil {
			continue
		}
		by := t.inhibitor(v, s, own, whole, end)
		switch {
		case s.change != nil && s.change.State == stage.Resolved:
			// Whoever was told that it fires is told that it is over.
			s.change.InhibitedBy = s.r.InhibitedBy
			if s.r.Notified {
				s.change.InhibitedBy = ""
			}
			t.send(v, s, s.change, end)
			s.r.InhibitedBy, s.r.Notified, s.r.HoldFrom = "", false, 0
			continue
		case s.change != nil:
			s.change.InhibitedBy = by
			t.send(v, s, s.change, end)
		case by != s.r.InhibitedBy:
			var a record.Alert
			if err := json.Unmarshal(s.r.Last, &a); err != nil {
				continue // an alert of another build: its next change will say
			}
			a.InhibitedBy, a.At = by, pipeline.Format(end)
			if s.a != nil {
				t.latest(v, s, &a, end)
			}
			t.send(v, s, &a, end)
		}
		s.r.InhibitedBy = by
		s.r.Notified = s.r.Notified || by == "" && s.r.State == stage.Firing
	}
}

// latest puts the ECE of the latest rows into an alert of the alarm that is published once more.
func (t *ModelTask) latest(v *version, s *standing, a *record.Alert, end int64) {
	bins, rows := s.k.Recent.Last(s.a.confidence(), alarmRows)
	if rows == 0 {
		return
	}
	iv := metric.Resample(bins, t.cfg.Resamples, s.k.Seed(s.a.signal, end/t.cfg.Pane))
	a.ECE, a.ECENull, a.ECELo, a.ECEHi = metric.ECE(bins), iv.Null, &iv.Lo, &iv.Hi
	a.Rows, a.Window, a.Diagram = rows, fmt.Sprintf("last %d rows", alarmRows), t.env.Diagram(&s.k.Key, a.At)
}

// inhibitor returns who inhibits a pending or firing alert; "" for nobody.
func (t *ModelTask) inhibitor(v *version, s, own, whole *standing, end int64) string {
	if by := t.answeredBy(v, s); by != "" {
		s.r.HoldFrom = 0
		return by
	}
	for _, root := range []*standing{whole, own} {
		if root != nil && root.r != s.r && root.severity >= s.severity && root.standsFor(s) {
			s.r.HoldFrom = 0
			return alertKey(v, root.k, root.name)
		}
	}
	if s.r.InhibitedBy == "" {
		return ""
	}
	if s.r.HoldFrom == 0 {
		s.r.HoldFrom = end
	}
	if end-s.r.HoldFrom < int64(t.cfg.Hold) {
		return s.r.InhibitedBy
	}
	s.r.HoldFrom = 0
	return ""
}

// standsFor is false where an alert cannot follow from a root: a fall of accuracy explains no error of calibration.
func (s *standing) standsFor(o *standing) bool { return !s.ofAccuracy() || o.ofAccuracy() }

func (s *standing) ofAccuracy() bool { return s.a != nil && s.a.signal == signalAccuracy }

// before reports whether s rather than o is the root of both.
func (s *standing) before(o *standing) bool {
	if s.ofAccuracy() != o.ofAccuracy() {
		return o.ofAccuracy()
	}
	return cmp.Or(cmp.Compare(o.severity, s.severity), cmp.Compare(s.order, o.order)) < 0
}

func alertKey(v *version, k *keyState, rule string) string {
	return v.Model + "/" + v.Name + "/" + k.Slice + "/" + rule
}

// send publishes one alert and keeps it as the rule's latest.
func (t *ModelTask) send(v *version, s *standing, a *record.Alert, end int64) {
	m, err := pipeline.NewMessage(pipeline.StreamAlerts, alertKey(v, s.k, s.name), end, a)
	if err != nil {
		panic("model: alert does not marshal: " + err.Error())
	}
	s.r.Last = m.Value
	t.env.Emit(&s.k.Key, m)
}
