package record

// Unlabelled has statistics of a window's predictions without their labels (docs/math.md, "Before labels").
type Unlabelled struct {
	Rows int64 `json:"n"` // predictions of the window
	// ReferenceRows predictions up to ReferenceTo are what the distances are from; absent while there are too few.
	ReferenceRows int64 `json:"reference_rows,omitempty"`
	ReferenceTo   Time  `json:"reference_to,omitzero"`
	// Distances by confidence score function: msp, margin, negent.
	Distances map[string]Distances `json:"distances,omitempty"`
	Estimates []Estimate           `json:"estimates,omitempty"`
	// Range is what the confidence-based estimate and that of correctness shift say together; absent without either.
	Range *Range `json:"range,omitempty"`
	// Classes has the statistics of the predicted classes, if they are counted.
	Classes *Classes `json:"classes,omitempty"`
}

// Range is between what two estimates of the accuracy say, each right under its own assumption. It is widened at both
// ends by Margin, which 90 % of the latest Blocks of labelled rows needed. Not Known: the accuracy cannot be known
// without labels, as the range is too wide, fewer than 9 blocks have tested it, an assumption is refuted, or it is
// stale.
type Range struct {
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	Margin float64 `json:"margin"`
	Blocks int     `json:"blocks"`
	Known  bool    `json:"known"`
	// Rejected: the rows refute an assumption. The range has the end of [0, 1] to which its estimate points.
	Rejected bool `json:"rejected,omitempty"`
	// Stale: the newest 10 blocks together lay outside what both estimates said.
	Stale bool `json:"stale,omitempty"`
}

// Classes says how far the shares of the classes have moved. PSI and Jensen–Shannon are of the predicted classes from
// the reference's, over Bins bins; the estimates of the shares themselves rest on label shift.
type Classes struct {
	PSI           *Distance    `json:"psi,omitempty"`
	JensenShannon *Distance    `json:"js,omitempty"`
	Bins          int          `json:"bins,omitempty"`
	Shifts        []ClassShift `json:"shifts,omitempty"`
	Why           string       `json:"why,omitempty"` // an estimate is missing
}

// ClassShift is one estimate of the shares; its accuracy is among the Estimates, under the same method.
type ClassShift struct {
	Method string `json:"method"` // label shift (BBSE) | label shift (EM)
	// Distance is the total variation of the shares from those of the reference; noise alone makes it about Null.
	Distance float64 `json:"distance"`
	Null     float64 `json:"null"`
	// Condition is by about how much noise is magnified; Ridge above 0: it is too much, and the estimate is drawn to no
	// shift.
	Condition *float64 `json:"condition"`
	Ridge     float64  `json:"ridge,omitempty"`
	// Statistic is about χ² of DF degrees of freedom where the assumption holds; Rejected: P is below unlabelled.alpha.
	Statistic float64 `json:"statistic"`
	DF        float64 `json:"df"`
	P         float64 `json:"p"`
	Rejected  bool    `json:"rejected,omitempty"`
	// Unknown classes have no row in the reference; their share is taken to be 0.
	Unknown int `json:"unknown,omitempty"`
	// Pooled is how many classes are pooled, those with the fewest labelled rows: of more than 128 classes, the 127
	// with the most rows stay separate.
	Pooled int          `json:"pooled,omitempty"`
	Worst  []ClassShare `json:"worst,omitempty"` // classes whose share has moved most
}

// ClassShare is the share of one class, in the reference and now; SE is of their difference, Weight their quotient.
type ClassShare struct {
	Class     int     `json:"class"` // -1 = the pooled ones
	Reference float64 `json:"reference"`
	Share     float64 `json:"share"`
	SE        float64 `json:"se"`
	Weight    float64 `json:"weight"`
}

// Distances are those of two distributions of a confidence score. PSI and Jensen–Shannon are over Bins bins.
type Distances struct {
	KS            Distance `json:"ks"`
	Wasserstein   Distance `json:"wasserstein"`
	PSI           Distance `json:"psi"`
	JensenShannon Distance `json:"js"`
	Bins          int      `json:"bins"`
}

// Distance comes with its distribution under sampling noise alone at these numbers of rows: the mean, a threshold
// exceeded with probability alpha if nothing has changed, and a p-value for one evaluation.
type Distance struct {
	Value     float64 `json:"value"`
	Null      float64 `json:"null"`
	Threshold float64 `json:"threshold"`
	P         float64 `json:"p"`
}

// Estimate is an estimate of the accuracy of predictions without labels, with its assumption; Lo, Hi hold it with 95 %
// if that is true. ECE is of the raw confidence, null where the method says nothing of it.
type Estimate struct {
	// confidence-based | correctness shift (BBSE) | label shift (BBSE) | label shift (EM)
	Method     string `json:"method"`
	Assumption string `json:"assumption"`
	// Rejected: the rows refute the assumption. Correctness shift has no numbers then (null).
	Rejected bool     `json:"rejected,omitempty"`
	Accuracy *float64 `json:"accuracy"`
	Lo       *float64 `json:"lo"`
	Hi       *float64 `json:"hi"`
	ECE      *float64 `json:"ece"`
	// Miss is the estimate less what the labelled rows of the window show, once there are some: their accuracy, plus
	// what the calibrated confidence of all predictions is above theirs, as labels may come for some rows only. Beyond
	// 3 standard errors the assumption has failed.
	Miss *Miss `json:"miss,omitempty"`
}

// Miss is a difference with its standard error; Z is their quotient.
type Miss struct {
	Labelled   int64   `json:"n"`
	Difference float64 `json:"difference"`
	SE         float64 `json:"se"`
	Z          float64 `json:"z"`
}
