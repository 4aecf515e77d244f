package stage

import (
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
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
