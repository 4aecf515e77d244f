package stage

import (
	"encoding/json"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// AlertState is the state of the alert of one rule or alarm for one key.
type AlertState struct {
	State      string // "", pending, firing
	Since      int64  // start of the first pane beyond the bound
	OverFrom   int64  // end of that pane: a rule's For counts from here
	ClearFrom  int64  // end of the first pane back inside while firing; 0 = none
	LastChange int64
	Last       []byte // the latest alert, as published

	InhibitedBy string // as in the latest alert
	Notified    bool   // receivers were notified since it was last inactive
	HoldFrom    int64  // end of the pane at which its inhibitor was gone; 0 = the inhibitor is there
}

// Signals, and states of an alert.
const (
	SignalRaw        = "raw"
	SignalCalibrated = "calibrated"
	Inactive         = ""
	Pending          = "pending"
	Firing           = "firing"
	Resolved         = "resolved"
)

// End resolves the alert. What inhibited it, and whether receivers were notified, stay for the alert that says so.
func (r *AlertState) End() {
	*r = AlertState{LastChange: r.Since, Last: r.Last, InhibitedBy: r.InhibitedBy, Notified: r.Notified}
}

// Append appends the state.
func (r *AlertState) Append(dst []byte) []byte {
	dst = append(dst, byte(slices.Index(alertStates, r.State)))
	for _, v := range []int64{r.Since, r.OverFrom, r.ClearFrom, r.LastChange} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst = binenc.AppendBytes(dst, r.Last)
	dst = append(binenc.AppendString(dst, r.InhibitedBy), binenc.Flags(r.Notified))
	return binenc.AppendVarint(dst, r.HoldFrom)
}

// Restore reads what Append wrote.
func (r *AlertState) Restore(in *binenc.Reader) {
	r.State = alertStates[min(int(in.Byte()), len(alertStates)-1)]
	r.Since, r.OverFrom, r.ClearFrom, r.LastChange = in.Varint(), in.Varint(), in.Varint(), in.Varint()
	r.Last = slices.Clone(in.Bytes(binenc.MaxBytes))
	r.InhibitedBy, r.Notified, r.HoldFrom = in.String(binenc.MaxBytes), in.Byte() == 1, in.Varint()
}

var alertStates = []string{Inactive, Pending, Firing}

// SignalAccuracy is the accuracy of the model's own predictions: an alarm on it is no reason for a refit.
const SignalAccuracy = "accuracy"

// Severities in ascending order.
var Severities = []string{"info", "warning", "critical"}

// Alert is one rule or alarm of a key: the state of its alert, and what decides which alert inhibits which.
type Alert struct {
	AlertState
	Rule     string // its name
	Severity int    // index into Severities
	Order    int    // among the alerts of its key
	Signal   string
	Anytime  bool // of the anytime-valid alarm

	// Of the pane at hand, not part of the state.
	Answered bool                             // a calibrator answers it: no reason for another refit
	Change   *record.Alert                    // what is to be published; nil = no change
	Refresh  func(a *record.Alert, end int64) // brings an alert that is published once more up to date; nil = it stays
}

// OfAccuracy reports whether the alert is the alarm on accuracy.
func (a *Alert) OfAccuracy() bool { return a.Anytime && a.Signal == SignalAccuracy }

// FiringSince returns the earliest start among the firing alerts of a key that a calibrator can mend: neither an alarm
// on accuracy nor one that a calibrator has answered.
func (k *Key) FiringSince() (since int64, any bool) {
	for _, a := range k.Alerts {
		if a.State != Firing || a.Answered || a.OfAccuracy() {
			continue
		}
		if !any || a.Since < since {
			since, any = a.Since, true
		}
	}
	return since, any
}

// AlertKey is the key of a rule's records on the alerts topic.
func (k *Key) AlertKey(rule string) string {
	return k.Version.Model + "/" + k.Version.Name + "/" + k.Slice + "/" + rule
}

// Ended is the state of an alert whose rule or alarm is there no more, and why.
type Ended struct {
	State AlertState
	Why   string
}

// Rule is the name of the rule by its latest alert; "" where there is none.
func (r *AlertState) Rule() string {
	var last record.Alert
	if json.Unmarshal(r.Last, &last) != nil {
		return ""
	}
	return last.Rule
}

// EndAlerts are the alerts of a key, as ended: rules, then alarms.
func (k *Key) EndAlerts(why string) []Ended {
	var rules, alarms []Ended
	for _, a := range k.Alerts {
		if e := (Ended{a.AlertState, why}); a.Anytime {
			alarms = append(alarms, e)
		} else {
			rules = append(rules, e)
		}
	}
	return append(rules, alarms...)
}
