package refit

import (
	_ "embed"
	"slices"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config says when and how calibrators are refitted. Times are event time.
type Config struct {
	// Calibrator to fit; auto: several, chosen by classes and rows; none: never refit.
	Method string `yaml:"method" default:"auto"`
	// Event time between refits; 0: not by period, otherwise at least event_time.pane.
	Period time.Duration `yaml:"period" default:"1h"`
	// Refit when the alarm or a rule fires.
	OnAlarm bool `yaml:"on_alarm" default:"true"`
	// Let a temperature answer a change before the alarm (docs/operations.md).
	FirstAnswer bool `yaml:"first_answer" default:"true"`
	// A refit on alarm waits for this many sampled rows since the alarm's start, and since the refit before it.
	FreshRows int `yaml:"fresh_rows" default:"1000" min:"0" max:"10_000_000"`
	// Fewest sampled rows of a refit, and fewest new ones of the next by period.
	MinRows int `yaml:"min_rows" default:"500" min:"10" max:"10_000_000"`
	// Latest sampled rows that a refit uses.
	MaxRows int `yaml:"max_rows" default:"5000" min:"10" max:"10_000_000"`
	// Newest share of these rows, never fitted on: candidates are first scored on it.
	TestShare float64 `yaml:"test_share" default:"0.3" min:"0.05" max:"0.9"`
	// Label panes after which a fit is due: its result is used then, and a model whose fit takes longer waits.
	Delay int64 `yaml:"delay" default:"1" min:"1" max:"10_000"`
	// Fits at a time in this process; 0: half of the processors. No result depends on it.
	Workers int `yaml:"workers" min:"0" max:"1024"`
	// Level of the test that a candidate must pass, split over the candidates.
	Alpha float64 `yaml:"alpha" default:"0.01" above:"0" max:"0.5"`
	// A validation without a result after this many rows ends without a change; 0: no bound.
	ValidationRows int `yaml:"validation_rows" default:"10_000" min:"0" max:"1_000_000_000"`
	// A validation without a result after this time ends too; 0: no bound.
	ValidationFor time.Duration `yaml:"validation_for"`
	// Published only if NLL falls by at least this many nats.
	MinNLLGain float64 `yaml:"min_nll_gain" default:"0.001" min:"0" max:"10"`
	// Published only if ECE rises by at most this.
	MaxECERise float64 `yaml:"max_ece_rise" default:"0.005" min:"0" max:"1"`
	// Published only if accuracy drops by at most this.
	MaxAccuracyDrop float64 `yaml:"max_accuracy_drop" default:"0.005" min:"0" max:"1"`
	// Shortest time for which a candidate is scored but not served.
	ShadowFor time.Duration `yaml:"shadow_for"`
	// Share of the ids that get a candidate first; 0: no canary.
	CanaryShare float64 `yaml:"canary_share" min:"0" max:"0.9"`
	// Time for which only these ids have it.
	CanaryFor time.Duration `yaml:"canary_for" default:"10m"`
	// Smallest mean number of label panes between false rollbacks; 0: no rollback.
	RollbackPanes int64 `yaml:"rollback_panes" default:"1_000_000" min:"0" max:"1_000_000_000_000"`
	// Event time between refits on alarm.
	Cooldown time.Duration `yaml:"cooldown" default:"2m"`
	// Let probabilities follow the newest outcomes between refits (docs/operations.md). A pin ends it.
	Follow bool `yaml:"follow" default:"true"`
	// What to do when class shares have moved. off: nothing. candidate: class weights are validated like a refit's
	// candidate, once labels come. at_once: they come into force before labels. They may change the top class of a row.
	LabelShift string `yaml:"label_shift" default:"off" enum:"off|candidate|at_once"`
}

// Choices lists the methods.
func (Config) Choices(key string) []string {
	if key != "method" {
		return nil
	}
	names, scaled := []string{"auto", "none"}, []string{}
	for _, m := range calibrator.Methods() {
		names = append(names, m.Name)
		if m.Scalable {
			scaled = append(scaled, m.Name+calibrator.Suffix)
		}
	}
	return slices.Concat(names, scaled)
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.MinRows > c.MaxRows {
		r.Fail("min_rows", c.MinRows, "must be at most @max_rows, %d", c.MaxRows)
	}
	if c.FreshRows > c.MaxRows {
		r.Fail("fresh_rows", c.FreshRows, "must be at most @max_rows, %d", c.MaxRows)
	}
}

// Values of Config.LabelShift, which says what to do when class shares have moved.
const (
	ShiftCandidate = "candidate" // class weights on the calibrator in force are validated like a refit's candidate
	ShiftAtOnce    = "at_once"   // class weights come into force before labels, if the label-shift test passes
)

// Methods of Config that do not name a calibrator.
const (
	MethodNone = "none"
	methodAuto = "auto"
)

// Reasons of a decision.
const (
	reasonPeriod   = "period"
	reasonAlarm    = "alarm"
	reasonQuick    = "quick"
	reasonRollback = "rollback"
	reasonManual   = "manual"
	reasonClasses  = "classes"
	reasonCanary   = "canary"
	reasonShift    = "label_shift"
)
