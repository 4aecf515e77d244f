package record

import (
	"encoding/json"
	"fmt"
)

// Decision is an entry of the decisions topic, key model: a copy of every record that says what was decided, wherever else
// it goes. Calibrators, alerts and heads also have compacted topics of their own, which keep the latest of a key only, and
// "no change" has none: this topic is what a history can be rebuilt from. A repeat has the same bytes.
type Decision struct {
	Schema  int    `json:"schema"` // 1
	Kind    string `json:"kind"`   // calibrator | alert | request | head | verdict | order
	Model   string `json:"model"`
	Version string `json:"version"`
	// Record is the Calibrator, Alert, Finetune, Head, Verdict or Order.
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
)

// NewDecision wraps the JSON of a record.
func NewDecision(kind, model, version string, record []byte) ([]byte, error) {
	b, err := json.Marshal(Decision{Schema: 1, Kind: kind, Model: model, Version: version, Record: record})
	if err != nil {
		return nil, fmt.Errorf("decision of kind %s: %w", kind, err)
	}
	return b, nil
}
