package finetune

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (TriggerConfig) Declaration() string { return configSource }

// TriggerConfig says when a model version gets a new head. Times are event time.
type TriggerConfig struct {
	// Request heads on topics.finetune.
	Enabled bool `yaml:"enabled"`
	// How to train: a recipe of `plumbline train`.
	Recipe string `yaml:"recipe" default:"auto" required:"true"`
	// The trigger decides on the latest label panes with at least this many sampled rows.
	Rows int64 `yaml:"rows" default:"2000" min:"10" max:"1_000_000_000"`
	// With fewer rows the trigger does not decide; at most rows.
	MinRows int64 `yaml:"min_rows" default:"1000" min:"10" max:"1_000_000_000"`
	// Number of first sampled rows of a model version that are the reference.
	ReferenceRows int64 `yaml:"reference_rows" default:"4000" min:"10" max:"1_000_000_000"`
	// Excess ECE since calibration was last tried, above which a head is requested.
	MaxECE float64 `yaml:"max_ece" default:"0.03" above:"0" max:"1"`
	// Drop of accuracy from the reference above which a head is requested.
	MaxAccuracyDrop float64 `yaml:"max_accuracy_drop" default:"0.03" above:"0" max:"1"`
	// Rise of AURC from the reference above which a head is requested.
	MaxAURCRise float64 `yaml:"max_aurc_rise" default:"0.03" above:"0" max:"1"`
	// The drop or rise must also be this many standard errors.
	Z float64 `yaml:"z" default:"3" min:"0" max:"10"`
	// The cause must last this long.
	For time.Duration `yaml:"for" default:"5m"`
	// Sampled rows that must have come since it began, to train on.
	DataRows int64 `yaml:"data_rows" default:"2000" min:"10" max:"1_000_000_000"`
	// Time between requests for a model version.
	Cooldown time.Duration `yaml:"cooldown" default:"6h"`
	// Most requests for a model version within budget_period.
	Budget int `yaml:"budget" default:"7" min:"1" max:"1000"`
	// Period of the budget.
	BudgetPeriod time.Duration `yaml:"budget_period" default:"168h" min:"1s"`
	// Time from a request to the first rows that its head runs on; longer than archive.roll_time and training take, or
	// a replay differs.
	ShadowAfter time.Duration `yaml:"shadow_after" default:"30m"`
	// Time from a request after which it counts as failed if its head has not run.
	Deadline time.Duration `yaml:"deadline" default:"24h" min:"1s"`
}

// Check implements the check of conditions between keys.
func (c TriggerConfig) Check(r *setting.Report) {
	if c.MinRows > c.Rows {
		r.Fail("min_rows", c.MinRows, "must be at most @rows, %d", c.Rows)
	}
}
