package record

// Metrics are calibration metrics of a set of rows; keys as in `plumbline eval --json`.
// A field is null (nil) where it is undefined or was not computed.
type Metrics struct {
	N              int64    `json:"n"`
	Accuracy       *float64 `json:"accuracy"`
	MeanConfidence *float64 `json:"mean_confidence"`
	NLL            *float64 `json:"nll"`
	Brier          *float64 `json:"brier"`
	ECE            *float64 `json:"ece"`
	ECENull        *float64 `json:"ece_null"`
	ECENullHi      *float64 `json:"ece_null_hi"` // 95 % quantile of the null distribution
	ECELo          *float64 `json:"ece_lo"`
	ECEHi          *float64 `json:"ece_hi"`
	ECEL2          *float64 `json:"ece_l2"`
	MCE            *float64 `json:"mce"`
	CWECE          *float64 `json:"cwece"`
	CWECEL2        *float64 `json:"cwece_l2"`
	SBECEBin       *float64 `json:"sbece_bin"`
	SBECELB        *float64 `json:"sbece_lb"`
	AURC           *float64 `json:"aurc"`
	// ECEByBins has the equal-width ECE for every further configured number of bins ("10", "20", …).
	ECEByBins map[string]float64 `json:"ece_by_bins,omitempty"`
	// Bins is the reliability diagram, empty bins included.
	Bins []Bin `json:"bins,omitempty"`
	// SoftBins and CDF are the sums behind SB-ECE and the binned CDF Ĝ_ν; in raw metrics only.
	SoftBins *SoftBins `json:"soft_bins,omitempty"`
	CDF      *CDF      `json:"cdf,omitempty"`
}

// Bin is one bin (Lo, Hi] of a reliability diagram; AccLo, AccHi is the 95 % Wilson interval.
type Bin struct {
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	N     int64   `json:"n"`
	Conf  float64 `json:"conf"`
	Acc   float64 `json:"acc"`
	AccLo float64 `json:"acc_lo"`
	AccHi float64 `json:"acc_hi"`
}

// SoftBins are the sums of the soft bins: S_j = Σu_j, Σu_j c, Σu_j a, Σu_j c².
type SoftBins struct {
	Temperature float64   `json:"temperature"`
	S           []float64 `json:"s"`
	UC          []float64 `json:"uc"`
	UA          []float64 `json:"ua"`
	UC2         []float64 `json:"uc2"`
}

// CDF is Ĝ_ν of the maximum probability, evaluated at the K_bins+1 edges Grid.
type CDF struct {
	Nu   float64   `json:"nu"`
	Grid []float64 `json:"grid"`
	G    []float64 `json:"g"`
}

// Snapshot is one window's metrics, key model/version/slice on the snapshots topic.
type Snapshot struct {
	Schema  int    `json:"schema"` // 1
	Model   string `json:"model"`
	Version string `json:"version"`
	Slice   string `json:"slice"` // "" = all rows, else column=value
	Window  Window `json:"window"`
	// At is the end of the label pane that this snapshot was taken at.
	At          Time     `json:"at"`
	Predictions int64    `json:"predictions"` // predictions seen in the window, labelled or not
	Labelled    int64    `json:"labelled"`
	Coverage    *float64 `json:"coverage"` // labelled / predictions; null where predictions are not windowed
	// Lost is there where the window may miss rows that a task's lost state had.
	Lost *Lost `json:"lost,omitempty"`
	Lag  Lag   `json:"label_lag"`
	Late int64 `json:"late"` // rows that came after their label pane was emitted
	// Confidence is the mean confidence of all predictions, labelled or not.
	Confidence *float64 `json:"mean_confidence_predictions"`
	Raw        Metrics  `json:"raw"`
	// Calibrated is of the sampled labelled rows, each scored by the calibrator in force at its event time.
	Calibrated Metrics  `json:"calibrated"`
	Served     *Metrics `json:"served,omitempty"`
	// InForce is the calibrator in force at At; nil while it is the identity.
	InForce *InForce `json:"calibrator"`
	// Online is the top confidence that follows the outcomes, where refit.follow is set; of all rows only.
	Online *Online `json:"online,omitempty"`
	// Unlabelled has the statistics of the window's predictions before their labels come; only of kind time, once there
	// is a reference.
	Unlabelled *Unlabelled `json:"unlabelled,omitempty"`
	// PooledValues are how many values of the column are pooled here, of slice column=~other: of the last one to two
	// half-lives, or with PooledMore at least so many.
	PooledValues int64 `json:"pooled_values,omitempty"`
	PooledMore   bool  `json:"pooled_values_more,omitempty"`
}

// Window identifies the window of a snapshot. For kind "time" Start and End bound the prediction time; for kind "rows"
// they bound the label panes.
type Window struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // time | rows
	Start Time   `json:"start"`
	End   Time   `json:"end"`
	Final bool   `json:"final"`
}

// Lag describes label time minus prediction time, in seconds; quantiles to one cell of the log histogram.
type Lag struct {
	Mean float64 `json:"mean_s"`
	P50  float64 `json:"p50_s"`
	P90  float64 `json:"p90_s"`
	P99  float64 `json:"p99_s"`
}

// InForce is the calibrator in force and what it did since: both metrics are of the same sampled rows.
type InForce struct {
	Version       int     `json:"version"`
	Method        string  `json:"method"`
	Temperature   float64 `json:"temperature,omitempty"`
	EffectiveFrom Time    `json:"effective_from"`
	Raw           Metrics `json:"raw"`
	Calibrated    Metrics `json:"calibrated"`
}
