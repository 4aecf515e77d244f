package alarm

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the anytime-valid alarm on calibration error of every key.
type Config struct {
	// Run the alarm.
	Enabled bool `yaml:"enabled" default:"true"`
	// What the alarm tests. raw: the model's own confidence; calibrated: the output of the calibrator in force;
	// accuracy: a fall of the model's accuracy.
	Signals []string `yaml:"signals" default:"raw,calibrated,accuracy" required:"true" enum:"raw|calibrated|accuracy"`
	// Tolerance of the ECE: the alarm fires on proof that it was exceeded.
	EpsilonECE float64 `yaml:"epsilon_ece" default:"0.02" above:"0" max:"0.5"`
	// Tolerance of every single bin, in the alarm's second test.
	EpsilonBin float64 `yaml:"epsilon_bin" default:"0.05" above:"0" max:"0.5"`
	// Tolerance of every predicted class, in the third test on calibrated, of whole model versions; 0: no such test.
	// There is none with more than 60 classes, with matured or with reference.
	EpsilonClass float64 `yaml:"epsilon_class" default:"0.1" min:"0" max:"0.5"`
	// Tolerance of accuracy: the alarm fires on proof that accuracy was lower than that of the reference by more than
	// this.
	EpsilonAccuracy float64 `yaml:"epsilon_accuracy" default:"0.02" above:"0" max:"0.5"`
	// Bins of both tests.
	Bins int `yaml:"bins" default:"15" min:"2" max:"60"`
	// Least mean event time between false alarms of a model version; its signals share it equally.
	FalseAlarmEvery time.Duration `yaml:"false_alarm_every" default:"8760h" min:"1s"`
	// Severity label of the alert.
	Severity string `yaml:"severity" default:"critical" enum:"info|warning|critical"`
	// Severity label of the alert on accuracy.
	AccuracySeverity string `yaml:"accuracy_severity" default:"warning" enum:"info|warning|critical"`
	// Largest weight of a row; larger ones break the bound on false alarms.
	MaxWeight float64 `yaml:"max_weight" default:"1" above:"0" max:"1_000_000_000"`
	// 0: a row counts when its label comes. Otherwise alarms, rules and refits count it this long after its prediction:
	// set it to the longest label delay, at most join.wait, where labels come sooner for wrong predictions.
	Matured time.Duration `yaml:"matured"`
	// none: test the error itself. pinned: its change from the first reference_rows rows. rolling: its change from the
	// reference_rows rows before. For accuracy none means pinned.
	Reference string `yaml:"reference" default:"none" enum:"none|pinned|rolling"`
	// Labelled rows of the reference; every slice has its own.
	ReferenceRows int64 `yaml:"reference_rows" default:"10_000" min:"100" max:"1_000_000_000"`
	// The tolerances are widened by this many standard errors of the reference.
	Slack float64 `yaml:"slack" default:"1" min:"0" max:"10"`
	// Test every slice too.
	Slices bool `yaml:"slices" default:"true"`
	// Largest expected share of false alarms among the slices of a model version that alarm, by signal (e-BH).
	FDR float64 `yaml:"fdr" default:"0.05" above:"0" max:"0.5"`
	// Rows since the alarm that are needed to show that the error is back inside the tolerance.
	ClearRows int64 `yaml:"clear_rows" default:"1000" min:"1" max:"1_000_000_000"`
	// Event time for which the rows must show this without interruption.
	ClearFor time.Duration `yaml:"clear_for" default:"30s"`
	// Rows without another alarm after which it is resolved too; 0: never.
	QuietRows int64 `yaml:"quiet_rows" default:"50_000" min:"0" max:"1_000_000_000"`
	// Event time for which an alert stays inhibited after its inhibitor, unless it waits for a calibrator's rows.
	Hold time.Duration `yaml:"hold" default:"15m"`
}

// Names are the names of the alarms in alerts.
var Names = []string{"calibration-raw", "calibration-calibrated", "accuracy-fall"}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if n := c.Bins; n > 0 && acc.GridCells%n != 0 {
		r.Fail("bins", n, "must divide %d, such as 10, 12, 15, 18, 20, 24, 25, 30", acc.GridCells)
	}
	signals := r.Distinct("signals", "")
	for i, s := range c.Signals {
		signals(i, s)
	}
}
