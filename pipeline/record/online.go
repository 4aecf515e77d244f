package record

// Online is how the top confidence does that follows the outcomes (refit.follow), over all sampled rows since the
// start, each forecast before its label was seen. Log losses are of the top label, in nats a row.
type Online struct {
	Rows int64 `json:"rows"`
	// EffectiveFrom, Power, Slope and Intercept are of the correction that is served, as those of TopCorrection. It is
	// on top of the calibrator in force; without one there is no EffectiveFrom.
	EffectiveFrom Time `json:"effective_from,omitzero"`

	Power     float64 `json:"power,omitempty"`
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
	ECE       float64 `json:"ece"` // of the forecasts
	LogLoss   float64 `json:"log_loss"`
	// BestFixed is the best fixed map for the same rows, chosen in hindsight; Regret the mean log loss above its.
	BestFixed FixedPlatt `json:"best_fixed"`
	Regret    float64    `json:"regret"`
}

// FixedPlatt is a map of the log-odds, and its mean log loss.
type FixedPlatt struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
	LogLoss   float64 `json:"log_loss"`
}
