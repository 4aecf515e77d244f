package stage

import (
	"cmp"
	"iter"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// AlertState is the state of one alert: that of one rule or alarm for one key.
type AlertState struct {
	State      string // "", pending, firing
	Since      int64  // start of the first pane beyond the bound; of an alarm, of the first predictions
	OverFrom   int64  // end of the pane at Since, from which For counts; of an alarm, since when labels tell
	ClearFrom  int64  // while firing: end of the first pane back within the bound; 0 = still beyond it
	LastChange int64
	Last       LastAlert

	InhibitedBy string // the alert that inhibits this one, as in the latest record
	Notified    bool   // receivers were notified since the alert was last inactive
	// HoldFrom is the end of the pane at which the inhibiting alert was gone; 0 = it is still active.
	HoldFrom int64
}

// Signals that an alert can have, and the states of an alert.
const (
	SignalRaw        = "raw"
	SignalCalibrated = "calibrated"
	Inactive         = ""
	Pending          = "pending"
	Firing           = "firing"
	Resolved         = "resolved"
)

// RowsOf says in words what the rows of a signal are: only those of the sample are calibrated.
func RowsOf(signal string) string {
	if signal == SignalCalibrated {
		return "sampled rows"
	}
	return "labelled rows"
}

// End resolves the alert. InhibitedBy and Notified stay, because the record that resolves it needs them.
func (r *AlertState) End() {
	*r = AlertState{LastChange: r.Since, Last: r.Last, InhibitedBy: r.InhibitedBy, Notified: r.Notified}
}

// Append appends the state to a checkpoint.
func (r *AlertState) Append(dst []byte) []byte {
	dst = append(dst, byte(slices.Index(alertStates, r.State)))
	for _, v := range []int64{r.Since, r.OverFrom, r.ClearFrom, r.LastChange} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst = r.Last.Append(dst)
	dst = append(binenc.AppendString(dst, r.InhibitedBy), binenc.Flags(r.Notified))
	return binenc.AppendVarint(dst, r.HoldFrom)
}

// Restore reads what Append wrote.
func (r *AlertState) Restore(in *binenc.Reader) {
	r.State = alertStates[min(int(in.Byte()), len(alertStates)-1)]
	r.Since, r.OverFrom, r.ClearFrom, r.LastChange = in.Varint(), in.Varint(), in.Varint(), in.Varint()
	r.Last.Restore(in)
	r.InhibitedBy, r.Notified, r.HoldFrom = in.String(binenc.MaxBytes), in.Byte() == 1, in.Varint()
}

var alertStates = []string{Inactive, Pending, Firing}

// SignalAccuracy is the signal of the alarm on accuracy. Recalibration cannot raise accuracy, so this alarm does not
// start a refit.
const SignalAccuracy = "accuracy"

// Severities are in ascending order.
var Severities = []string{"info", "warning", "critical"}

// Alert is one rule or alarm of a key: its state, and the fields that decide which alert inhibits which.
type Alert struct {
	AlertState
	Rule     string // name of the rule or alarm
	Severity int    // index into Severities
	Order    int    // position among the alerts of its key
	Signal   string
	Anytime  bool // whether the alert is an anytime-valid alarm

	// These fields belong to the current pane and are not part of the state.
	Answered bool          // a calibrator has already answered the alert, so it starts no further refit
	Change   *record.Alert // the record to publish; nil = no change
	// Refresh gives a record that is published again the figures of now, and writes its message from them.
	Refresh func(a *record.Alert, end int64) error
	// Persists reports whether the rows that the newest calibrator serves show the error; nil = they cannot tell.
	Persists func() bool
}

// SetFigures sets what a record says of the rows of bins. Every change of its ECE comes here, so that its figures are
// all of the same rows.
func SetFigures(a *record.Alert, bins []metric.Bin, iv metric.Interval) {
	all := metric.Sum(bins)
	a.MeanConfidence, a.Accuracy = Number(all.Conf()), Number(all.Acc())
	a.ECE, a.ECENull, a.ECELo, a.ECEHi = metric.ECE(bins), iv.Null, &iv.Lo, &iv.Hi
}

// OfAccuracy reports whether this is the anytime-valid alarm on accuracy.
func (a *Alert) OfAccuracy() bool { return a.Anytime && a.Signal == SignalAccuracy }

// FiringSince returns the earliest start among the firing alerts that a calibrator can mend. Alarms on accuracy and
// alerts that a calibrator has answered do not count.
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

// ShowFiring returns the sampled rows whose labels came since the first of the alerts that FiringSince counts could be
// seen in labels.
func (k *Key) ShowFiring() iter.Seq[*acc.SampleRow] {
	seen, any := int64(0), false
	for _, a := range k.Alerts {
		if a.State != Firing || a.Answered || a.OfAccuracy() {
			continue
		}
		from := a.Since // of a rule, of labels
		if a.Anytime {
			from = cmp.Or(a.OverFrom, a.Since)
		}
		if !any || from < seen {
			seen, any = from, true
		}
	}
	return func(yield func(*acc.SampleRow) bool) {
		for i := range k.Sample {
			if any && k.Sample[i].LabelTS >= seen && !yield(&k.Sample[i]) {
				return
			}
		}
	}
}

// AccuracyFell returns the start of the alarm on accuracy that fires; 0 = none does.
func (k *Key) AccuracyFell() (since int64) {
	for _, a := range k.Alerts {
		if a.State == Firing && a.OfAccuracy() {
			since = a.Since
		}
	}
	return since
}

// AlertKey is the key of a rule's records on the alerts topic.
func (k *Key) AlertKey(rule string) string {
	return k.Version.Model + "/" + k.Version.Name + "/" + k.Slice + "/" + rule
}

// Ended is the alert state of a rule or alarm that no longer exists, with the reason.
type Ended struct {
	State AlertState
	Why   string
}

// Rule returns the name of the rule, read from the latest alert; "" if there was none.
func (r *AlertState) Rule() string {
	if r.Last.Record == nil {
		return ""
	}
	return r.Last.Record.Rule
}

// EndAlerts returns all alerts of a key as ended: rules first, then alarms.
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
