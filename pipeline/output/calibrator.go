package output

import "encoding/json"

// Calibrator is a refit decision: published (it takes force at EffectiveFrom) or "no change", with evidence.
// Key model/version on the calibrators topic, where only published ones are written.
type Calibrator struct {
	Schema    int    `json:"schema"` // 1
	Model     string `json:"model"`
	Version   string `json:"version"`
	Revision  int    `json:"revision"` // 1, 2, … by model version; that in force where nothing changed
	Published bool   `json:"published"`
	Reason    string `json:"reason"`  // period | alarm | demand
	Outcome   string `json:"outcome"` // why published or why not, in words
	// DecidedAt is the end of the deciding label pane; EffectiveFrom equals it.
	DecidedAt     string `json:"decided_at"`
	EffectiveFrom string `json:"effective_from"`
	// Calibrator is the calibrator itself as calib/calibrator encodes it.
	Calibrator json.RawMessage `json:"calibrator"`
	Evidence   Evidence        `json:"evidence"`
}

// Evidence compares the candidate with the calibrator in force on rows newer than those it was fitted on.
type Evidence struct {
	FitRows     int     `json:"fit_rows"`
	TestRows    int     `json:"test_rows"`
	FitFrom     string  `json:"fit_from"`
	FitTo       string  `json:"fit_to"`
	TestTo      string  `json:"test_to"`
	NLLInForce  float64 `json:"nll_in_force"`
	NLLNew      float64 `json:"nll_new"`
	NLLDiff     float64 `json:"nll_diff"` // mean paired difference new - in force; negative is better
	NLLDiffSE   float64 `json:"nll_diff_se"`
	ECEInForce  float64 `json:"ece_in_force"`
	ECENew      float64 `json:"ece_new"`
	AccInForce  float64 `json:"accuracy_in_force"`
	AccNew      float64 `json:"accuracy_new"`
	Temperature float64 `json:"temperature,omitempty"`
	OnBound     bool    `json:"on_bound,omitempty"`
}
