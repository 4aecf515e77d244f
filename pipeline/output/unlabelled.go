package output

// Unlabelled is what is known of a window's predictions without their labels (docs/math.md, "Before labels").
type Unlabelled struct {
	Rows int64 `json:"n"` // predictions of the window
	// ReferenceRows predictions up to ReferenceTo are what the distances are from; absent while there are too few.
	ReferenceRows int64  `json:"reference_rows,omitempty"`
	ReferenceTo   string `json:"reference_to,omitempty"`
	// Distances by confidence score function: msp, margin, negent.
	Distances map[string]Distances `json:"distances,omitempty"`
	Estimates []Estimate           `json:"estimates,omitempty"`
}

// Distances are those of two distributions of a confidence score. PSI and Jensen–Shannon are over Bins bins.
type Distances struct {
	KS            Distance `json:"ks"`
	Wasserstein   Distance `json:"wasserstein"`
	PSI           Distance `json:"psi"`
	JensenShannon Distance `json:"js"`
	Bins          int      `json:"bins"`
}

// Distance comes with what sampling noise alone makes of it at these numbers of rows: its mean, a threshold exceeded with
// probability alpha if nothing has changed, and a p-value for one look.
type Distance struct {
	Value     float64 `json:"value"`
	Null      float64 `json:"null"`
	Threshold float64 `json:"threshold"`
	P         float64 `json:"p"`
}

// Estimate is an estimate of the accuracy of predictions without labels, with its assumption; Lo, Hi hold it with 95 % if
// that is true. ECE is of the raw confidence, null where the method says nothing of it.
type Estimate struct {
	Method     string   `json:"method"` // confidence-based | correctness shift (BBSE)
	Assumption string   `json:"assumption"`
	Accuracy   float64  `json:"accuracy"`
	Lo         float64  `json:"lo"`
	Hi         float64  `json:"hi"`
	ECE        *float64 `json:"ece"`
	// Miss is the estimate less the accuracy of the window's labelled rows, once there are some: beyond 3 standard
	// errors the assumption has failed.
	Miss *Miss `json:"miss,omitempty"`
}

// Miss is a difference with its standard error; Z is their quotient.
type Miss struct {
	Labelled   int64   `json:"n"`
	Difference float64 `json:"difference"`
	SE         float64 `json:"se"`
	Z          float64 `json:"z"`
}
