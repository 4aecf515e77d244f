package record

import (
	"encoding/json"
	"strings"
)

// Decision is an entry of the decisions topic, key model: a copy of every record of a decision. Calibrators, alerts and
// heads also have compacted topics of their own, which keep only the latest record of a key, and "no change" has no
// topic. So this topic is the source from which a history can be rebuilt. A repeat has the same bytes.
type Decision struct {
	Schema  int    `json:"schema"` // 1
	Kind    string `json:"kind"`   // calibrator | alert | request | head | verdict | order | loss | skip
	Model   string `json:"model"`
	Version string `json:"version"`
	// Record is the Calibrator, Alert, Finetune, Head, Verdict, Order, Loss or Skip.
	Record json.RawMessage `json:"record"`
}

// Kinds of decisions, by the type of their record.
const (
	DecisionCalibrator = "calibrator" // Calibrator: published or not, canary, pinned, refused, …
	DecisionAlert      = "alert"      // Alert
	DecisionRequest    = "request"    // Finetune
	DecisionHead       = "head"       // Head
	DecisionVerdict    = "verdict"    // Verdict
	DecisionOrder      = "order"      // Order: of a person, about a head
	DecisionLoss       = "loss"       // Loss: of a task's state
	DecisionSkip       = "skip"       // Skip: of a record that ended its task
)

// DecisionKinds are all of them.
var DecisionKinds = []string{DecisionCalibrator, DecisionAlert, DecisionRequest, DecisionHead, DecisionVerdict,
	DecisionOrder, DecisionLoss, DecisionSkip}

// Decided is a record of which the decisions topic gets a copy.
type Decided interface {
	// Subject is the kind of the entry, and the model and version that it is about.
	Subject() (kind, model, version string)
}

// Subject implements Decided.
func (c *Calibrator) Subject() (kind, model, version string) {
	return DecisionCalibrator, c.Model, c.Version
}

// Subject implements Decided.
func (a *Alert) Subject() (kind, model, version string) { return DecisionAlert, a.Model, a.Version }

// Subject implements Decided.
func (f *Finetune) Subject() (kind, model, version string) {
	return DecisionRequest, f.Model, f.Version
}

// Subject implements Decided.
func (v *Verdict) Subject() (kind, model, version string) { return DecisionVerdict, v.Model, v.Version }

// Subject implements Decided. Orders about heads name the head alone.
func (o *Order) Subject() (kind, model, version string) {
	if o.Model == "" {
		model, version = HeadNames(o.ID)
		return DecisionOrder, model, version
	}
	return DecisionOrder, o.Model, o.Version
}

// HeadNames are the model and the version of a head's id, model/version+headN.
func HeadNames(id string) (model, version string) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return id, ""
	}
	model, version = id[:i], id[i+1:]
	if j := strings.LastIndex(version, "+head"); j >= 0 {
		version = version[:j]
	}
	return model, version
}

// NewDecision is the entry of the decisions topic for a record with its JSON.
func NewDecision(d Decided, body []byte) *Decision {
	kind, model, version := d.Subject()
	return &Decision{Schema: 1, Kind: kind, Model: model, Version: version, Record: body}
}
