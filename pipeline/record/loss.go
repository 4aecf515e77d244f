package record

import "maps"

// Loss describes a lost state of a task. The task began anew at a person's order, and rows that only the lost state
// held are in no statistic.
type Loss struct {
	Schema int    `json:"schema"` // 1
	Model  string `json:"model,omitempty"`
	Task   string `json:"task"` // shards/3, models/1 or repartition-logits/2; several with ", " between them
	// Since and Until bound the event times of what may be missing; without Since everything before Until may be.
	Since Time `json:"since,omitzero"`
	Until Time `json:"until,omitzero"`
	// From is where the task continues, by topic, or TOPIC/PARTITION if the task is of the repartition stage; Skipped
	// is how many offsets before it are never read.
	From    map[string]int64 `json:"from"`
	Skipped map[string]int64 `json:"skipped,omitempty"`
	By      string           `json:"by"`
	Why     string           `json:"why"`
	At      Time             `json:"at"` // of the order, wall clock
}

// With returns both losses as one.
func (l *Loss) With(other *Loss) *Loss {
	out := *other
	out.Task = l.Task + ", " + other.Task
	out.From, out.Skipped = joined(l.From, other.From), joined(l.Skipped, other.Skipped)
	if l.Since.IsZero() || other.Since.After(l.Since) {
		out.Since = l.Since
	}
	if l.Until.After(other.Until) {
		out.Until = l.Until
	}
	if l.Why != other.Why {
		out.Why = l.Why + "; " + other.Why
	}
	return &out
}

func joined(a, b map[string]int64) map[string]int64 {
	out := maps.Clone(a)
	if out == nil {
		return b
	}
	maps.Copy(out, b)
	return out
}

// Subject implements Decided.
func (l *Loss) Subject() (kind, model, version string) { return DecisionLoss, l.Model, "" }

// Lost is in every snapshot whose window a loss touches.
type Lost struct {
	Since Time     `json:"since,omitzero"`
	Until Time     `json:"until,omitzero"`
	Tasks []string `json:"tasks"` // whose state was lost
}
