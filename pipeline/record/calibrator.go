package record

import (
	"encoding/json"
	"strings"
)

// Calibrator is a decision about a model version's calibrator, with its evidence. Published ones (they take force at
// EffectiveFrom) are written to the calibrators topic under the key model/version, canaries (a share of the ids gets
// them) under model/version/canary, the others to no topic but that of decisions.
type Calibrator struct {
	Schema    int    `json:"schema"` // 1
	Model     string `json:"model"`
	Version   string `json:"version"`
	Revision  int    `json:"revision"` // 1, 2, … by model version; that in force where nothing changed
	Published bool   `json:"published"`
	// Stage is that of the calibrator below: full (in force), canary (for Share of the ids), shadow (scored only), or
	// empty where there is none.
	Stage string `json:"stage,omitempty"`
	// Share is the share of the ids that get a canary; 0 ends it.
	Share float64 `json:"share,omitempty"`
	// Reason is period, alarm, quick, rollback, manual, canary, label_shift, classes or labels.
	Reason string `json:"reason"`
	// State is what was decided: one of the Decided… constants. Records of builds that did not know it have none: see
	// Result.
	State   string `json:"state,omitempty"`
	Outcome string `json:"outcome"` // State and why, in words
	// DecidedAt is the end of the deciding label pane; EffectiveFrom equals it.
	DecidedAt     Time `json:"decided_at"`
	EffectiveFrom Time `json:"effective_from"`
	// Calibrator is the calibrator itself as calib/calibrator encodes it; null where nothing was published.
	Calibrator json.RawMessage `json:"calibrator"`
	Method     string          `json:"method,omitempty"` // that was fitted
	// Classes is K from now on, where the record is about that: shards refuse rows of another.
	Classes int `json:"classes,omitempty"`
	// Replaces is the revision that was in force, 0 the identity; Restores the one that is published again.
	Replaces int  `json:"replaces,omitempty"`
	Restores *int `json:"restores,omitempty"`
	// Pinned: only a person changes what is in force. By and Why are theirs.
	Pinned bool   `json:"pinned,omitempty"`
	By     string `json:"by,omitempty"`
	Why    string `json:"why,omitempty"`
	// Order is the id of the order that the record answers, in hexadecimal digits.
	Order string `json:"order,omitempty"`
	// Build is the version and commit of the plumbline that decided.
	Build    string   `json:"build,omitempty"`
	Evidence Evidence `json:"evidence"`
}

// What was decided of a calibrator.
const (
	DecidedPublished   = "published"
	DecidedRolledBack  = "rolled_back" // an earlier one, or the identity, is in force again
	DecidedPinned      = "pinned"
	DecidedUnpinned    = "unpinned"
	DecidedCanary      = "canary"
	DecidedCanaryEnded = "canary_ended"
	DecidedNoChange    = "no_change"
	DecidedClasses     = "classes" // the number of classes of the version, not its calibrator
	DecidedRefused     = "refused" // an order changed nothing: the record is no decision
)

// Result is State, taken from the other fields where the record is of a build that did not say it.
func (c *Calibrator) Result() string {
	begins := func(s string) bool { return strings.HasPrefix(c.Outcome, s) }
	switch {
	case c.State != "":
		return c.State
	case begins("refused: "):
		return DecidedRefused
	case c.Stage == StageCanary && c.Share > 0:
		return DecidedCanary
	case c.Stage == StageCanary:
		return DecidedCanaryEnded
	case begins("pin "), begins("published: pin "):
		return DecidedPinned
	case begins("unpin "):
		return DecidedUnpinned
	case begins("published: ") && c.Restores != nil:
		return DecidedRolledBack
	case c.Classes > 0:
		return DecidedClasses
	case c.Published:
		return DecidedPublished
	}
	return DecidedNoChange
}

// Refused reports whether the record is of an order that changed nothing, and no decision.
func (c *Calibrator) Refused() bool { return c.Result() == DecidedRefused }

// ReasonLabels is why something was withheld from a version, or taken back: the labels that came are no fair sample of
// its rows.
const ReasonLabels = "labels"

// Stages of a calibrator.
const (
	StageFull   = "full"
	StageCanary = "canary"
	StageShadow = "shadow"
	StageTop    = "top" // of a TopCorrection
)

// TopCorrection corrects the calibrator in force, from EffectiveFrom on, until the next one of its revision or the next
// revision: refit.follow publishes it as outcomes come. It is on the calibrators topic under the key model/version/top,
// and is no decision: its fields are as those of Calibrator.
type TopCorrection struct {
	Schema        int    `json:"schema"` // 1
	Model         string `json:"model"`
	Version       string `json:"version"`
	Revision      int    `json:"revision"`  // that it is on top of; 0 = the identity
	Published     bool   `json:"published"` // always false: not a calibrator of its own
	Stage         string `json:"stage"`     // StageTop
	DecidedAt     Time   `json:"decided_at"`
	EffectiveFrom Time   `json:"effective_from"`
	Rows          int64  `json:"rows"` // that it has followed
	// Power is that of all probabilities, before slope and intercept map the top confidence; absent: 1. A reader that
	// does not know it serves about what the calibrator alone says: slope and intercept are of what is left to correct.
	Power     float64 `json:"power,omitempty"`
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
	// Apart are the predicted classes that have a slope and intercept of their own, ascending. A reader that does not
	// know it corrects them as the others.
	Apart []ClassCorrection `json:"apart,omitempty"`
}

// ClassCorrection is the correction of the rows of one predicted class.
type ClassCorrection struct {
	Class     int     `json:"class"`
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
}

// Evidence compares a candidate with the calibrator in force on rows that come after those it was fitted on. NLLs are
// in nats, with probabilities floored at e^-NLLBound.
type Evidence struct {
	FitRows  int  `json:"fit_rows"`
	TestRows int  `json:"test_rows"`
	FitFrom  Time `json:"fit_from"`
	FitTo    Time `json:"fit_to"`
	// FitBegan is the end of the label pane that the fit began at: rows whose label came later are not in it. FitDigest
	// is "sha256:" and the hash of the rows in hexadecimal digits, over what docs/format.md says; for class weights,
	// which are fitted on predictions by class, of these. Absent where there was no fit.
	FitBegan    Time    `json:"fit_began,omitzero"`
	FitDigest   string  `json:"fit_digest,omitempty"`
	TestTo      Time    `json:"test_to"`
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
	// LogE is the log e-value against "not better", LogENeeded what publishes, at the level Alpha over all candidates.
	LogE       float64 `json:"log_e,omitempty"`
	LogENeeded float64 `json:"log_e_needed,omitempty"`
	Alpha      float64 `json:"alpha,omitempty"`
	NLLBound   float64 `json:"nll_bound,omitempty"`
	// ECERadius is how far an ECE of so many rows can be from what they were drawn with, at any time, at the level
	// Alpha.
	ECERadius float64 `json:"ece_radius,omitempty"`
	Seed      uint64  `json:"seed,omitempty,string"` // of the fits
	// Candidates are all that were fitted; the fields above are of the one that was published, or came nearest.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Candidate is what a validation found of one method.
type Candidate struct {
	Method    string   `json:"method"`
	NLL       float64  `json:"nll"`
	NLLDiff   float64  `json:"nll_diff"`
	NLLDiffSE float64  `json:"nll_diff_se"`
	ECE       float64  `json:"ece"`
	Accuracy  float64  `json:"accuracy"`
	LogE      float64  `json:"log_e"`
	Outcome   string   `json:"outcome,omitempty"` // why it may not be published
	OnBound   bool     `json:"on_bound,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}
