package record

// Alert is a state change of a rule or of the anytime-valid alarm; key model/version/slice/rule on the alerts topic.
type Alert struct {
	Schema  int    `json:"schema"` // 1
	Model   string `json:"model"`
	Version string `json:"version"`
	Slice   string `json:"slice"`
	Rule    string `json:"rule"`
	// anytime | excess | reference | distance | estimate | threshold; absent: excess
	Kind     string `json:"kind,omitempty"`
	Measure  string `json:"measure,omitempty"` // what Value is of, for kinds with a choice
	Severity string `json:"severity"`
	State    string `json:"state"` // pending | firing | resolved
	// Since is the start of the first label pane over the threshold; of kind anytime an estimate of the first
	// prediction with the error, however late its label came.
	Since Time `json:"since"`
	// At is the end of the label pane that changed the state, or what inhibits it. Figures and message are of then.
	At Time `json:"at"`
	// Value and Threshold by kind: excess ECE and fire; anytime: log evidence and log 1/α; else the measure and fire.
	Value     float64  `json:"value"`
	Threshold float64  `json:"threshold"`
	ValueLo   *float64 `json:"value_lo,omitempty"` // 95 % interval of Value, where there is one
	ValueHi   *float64 `json:"value_hi,omitempty"`
	ECE       float64  `json:"ece"`
	ECENull   float64  `json:"ece_null"`
	ECELo     *float64 `json:"ece_lo"`
	ECEHi     *float64 `json:"ece_hi"`
	// MeanConfidence and Accuracy are of the rows of ECE; nil where there are none, and in records of older builds.
	MeanConfidence *float64 `json:"mean_confidence,omitempty"`
	Accuracy       *float64 `json:"accuracy,omitempty"`
	Rows           int64    `json:"rows"`
	Signal         string   `json:"signal"` // raw | calibrated
	Window         string   `json:"window"` // in words
	Message        string   `json:"message"`
	// InhibitedBy is the key of the alert that this one follows from, or "calibrator N" where that calibrator answers
	// it, or NoPredictions and the event time since when its version has none; notifiers are silent about such an
	// alert.
	InhibitedBy string `json:"inhibited_by,omitempty"`
	// Diagram is the page's path, query included, at the reliability diagram of the moment.
	Diagram  string         `json:"diagram,omitempty"`
	Evidence *AlertEvidence `json:"evidence,omitempty"` // of kind anytime
}

// NoPredictions begins InhibitedBy where nothing can be judged of the version any more.
const NoPredictions = "no predictions since "

// AlertEvidence is why the anytime-valid alarm fired (docs/math.md, "Sequential detection").
type AlertEvidence struct {
	// ece: |ECE| within epsilon_ece is refuted; bin: every bin within epsilon_bin is; class: every predicted class
	// within epsilon_class is; accuracy: see EpsilonAccuracy
	Tests        []string `json:"tests"`
	EpsilonECE   float64  `json:"epsilon_ece"`
	EpsilonBin   float64  `json:"epsilon_bin"`
	LogE         float64  `json:"log_e"` // of ECE and of bins: the alarm is at log_e ≥ log_e_threshold
	LogEBin      float64  `json:"log_e_bin"`
	Threshold    float64  `json:"log_e_threshold"`
	ThresholdBin float64  `json:"log_e_threshold_bin"`
	// Of predicted classes; only where they are tested.
	EpsilonClass   float64 `json:"epsilon_class,omitempty"`
	LogEClass      float64 `json:"log_e_class,omitempty"`
	ThresholdClass float64 `json:"log_e_threshold_class,omitempty"`
	// ByChance says how seldom such evidence comes where nothing is wrong, such as "at most once in 3.4 years".
	ByChance string `json:"by_chance"`
	// EpsilonAccuracy and what follows are of the alarm on accuracy alone: that accuracy is at least ReferenceAccuracy
	// - AccuracyDip - EpsilonAccuracy - AccuracySlack is refuted; AccuracyDip is how far below its mean the accuracy of
	// the reference was at times. Where the confidences promise less, their promise stands in the place of the first
	// two, down to AccuracyHard; nil if there was no hard time yet. LogE is of that, and there are no bins.
	EpsilonAccuracy   float64  `json:"epsilon_accuracy,omitempty"`
	ReferenceAccuracy *float64 `json:"reference_accuracy,omitempty"`
	AccuracySlack     float64  `json:"accuracy_slack,omitempty"`
	AccuracyDip       float64  `json:"accuracy_dip,omitempty"`
	AccuracyHard      *float64 `json:"accuracy_hard,omitempty"`
	// FDR is the level of the e-BH procedure over so many slices; 0 for whole models, which have their thresholds.
	FDR       float64 `json:"fdr,omitempty"`
	Slices    int     `json:"slices,omitempty"`
	Direction string  `json:"direction"`      // overconfident | underconfident | off both ways | accuracy fell
	Since     Time    `json:"since_estimate"` // no confidence is attached to it
	// "" = calibration itself; pinned | rolling: change against that curve
	Reference string        `json:"reference"`
	Bins      []EvidenceBin `json:"bins"` // where: those off by more than their tolerance, ascending
	// Predicted classes that are off by more than epsilon_class; only where the test by class fired
	Classes []EvidenceClass `json:"classes,omitempty"`
}

// EvidenceClass is one predicted class, as EvidenceBin.
type EvidenceClass struct {
	Class      int     `json:"class"`
	N          float64 `json:"n"`
	Confidence float64 `json:"conf"`
	Accuracy   float64 `json:"acc"`
	Gap        float64 `json:"gap"`
	LogE       float64 `json:"log_e"`
	Since      Time    `json:"since_estimate,omitzero"`
}

// EvidenceBin is one bin (Lo, Hi]: N, Confidence, Accuracy and Gap = accuracy - confidence - reference are of past
// rows, discounted by half every 1,000.
type EvidenceBin struct {
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	N          float64 `json:"n"`
	Confidence float64 `json:"conf"`
	Accuracy   float64 `json:"acc"`
	Gap        float64 `json:"gap"`
	Reference  float64 `json:"reference,omitempty"`
	LogE       float64 `json:"log_e"` // that this bin alone is off, 0 where nothing says so
	Since      Time    `json:"since_estimate,omitzero"`
}
