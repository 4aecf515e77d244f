package record

// Loss describes a lost state of a task. The task began anew at a person's order, and rows that only the lost state
// held are in no statistic.
type Loss struct {
	Schema int    `json:"schema"` // 1
	Model  string `json:"model,omitempty"`
	Task   string `json:"task"` // shards/3 or models/1
	// Since and Until bound the event times of what may be missing; without Since everything before Until may be.
	Since Time `json:"since,omitzero"`
	Until Time `json:"until,omitzero"`
	// From is where the task continues, by topic; Skipped is how many offsets before it are never read.
	From    map[string]int64 `json:"from"`
	Skipped map[string]int64 `json:"skipped,omitempty"`
	By      string           `json:"by"`
	Why     string           `json:"why"`
	At      Time             `json:"at"` // of the order, wall clock
}

// Subject implements Decided.
func (l *Loss) Subject() (kind, model, version string) { return DecisionLoss, l.Model, "" }

// Lost is in every snapshot whose window a loss touches.
type Lost struct {
	Since Time     `json:"since,omitzero"`
	Until Time     `json:"until,omitzero"`
	Tasks []string `json:"tasks"` // whose state was lost
}
