package rule

import (
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the configuration of one rule: an alert on a value that stays beyond a bound, with hysteresis.
type Config struct {
	// Name in alerts and metrics; unique.
	Name string `yaml:"name" required:"true" format:"name"`
	// calibrated: the output of the calibrator in force; raw: the model's own confidence.
	Signal string `yaml:"signal" default:"calibrated" enum:"calibrated|raw"`
	// The rule window: the latest label panes with at least this many rows: labelled ones (calibrated: sampled) or
	// predictions.
	Rows int64 `yaml:"rows" default:"2000" min:"1" max:"1_000_000_000"`
	// With fewer rows the rule does not decide; at most rows.
	MinRows int64 `yaml:"min_rows" default:"500" min:"1" max:"1_000_000_000"`
	// Labelled rows of the key before the rule may fire.
	WarmupRows int64 `yaml:"warmup_rows" default:"2000" min:"0" max:"1_000_000_000"`
	// The rule is pending while the value is above this and significant; with side below, while it is below this. At
	// most 1 but for nll.
	Fire float64 `yaml:"fire" default:"0.05" above:"0" max:"1000"`
	// The rule resolves when the value is back on the other side of this.
	Clear float64 `yaml:"clear" default:"0.03" min:"0" max:"1000"`
	// Event time for which the value must be beyond fire before the rule fires.
	For time.Duration `yaml:"for" default:"30s"`
	// Event time for which the value must be beyond clear before the rule resolves.
	ClearFor time.Duration `yaml:"clear_for" default:"30s"`
	// Severity label of the alert.
	Severity string `yaml:"severity" default:"warning" enum:"info|warning|critical"`
	// Evaluate the rule on every slice too.
	Slices bool `yaml:"slices" default:"false"`
	// The value: excess ECE; the change of a measure from a reference; the distance of a score's distribution from the
	// reference; a measure estimated before labels; a measure itself.
	Kind string `yaml:"kind" default:"excess"`
	// The measure; docs/operations.md says what goes with which kind.
	Measure string `yaml:"measure" default:"ece"`
	// Kind distance: the confidence score; class: the shares of the predicted classes.
	Score string `yaml:"score" default:"msp" enum:"msp|margin|negent|class"`
	// Kinds reference and distance. pinned: the first reference_rows rows; rolling: the reference_rows rows before
	// the window.
	Reference string `yaml:"reference" default:"pinned" enum:"pinned|rolling"`
	// Rows of the reference.
	ReferenceRows int64 `yaml:"reference_rows" default:"5000" min:"100" max:"1_000_000_000"`
	// Kind distance: probability of a significant distance if nothing has changed.
	Alpha float64 `yaml:"alpha" default:"0.0001" above:"0" max:"0.5"`
	// Kind threshold: the side of fire on which the rule fires.
	Side string `yaml:"side" default:"above" enum:"above|below"`
	// Kind threshold: the whole 95 % interval must be beyond fire.
	Interval bool `yaml:"interval" default:"false"`
	// Measure coverage: smallest age of the predictions; 0: join.wait.
	Age time.Duration `yaml:"age" default:"0s"`
}

// kind describes one kind of rule.
type kind struct {
	name       string
	measures   []string
	make       func(*context) Rule
	compares   bool // its window keeps Config.Reference
	unlabelled bool // it does not wait for Config.WarmupRows
}

// kinds is the table of kinds. A new kind is a type that implements Rule, and a line here; a new measure is a case of
// Evaluate of its kind. Both are described in docs/operations.md. Config.bounds knows the kinds with keys of their own,
// and OF_ECE in web/assets/js/verdict.js the measures of calibration.
var kinds = []kind{
	{name: Excess, measures: []string{ECE}, make: newExcess},
	{name: Reference, measures: []string{ECE, SmECE, Accuracy, NLL, Curve}, make: newComparison, compares: true},
	{name: Distance, measures: []string{KS, PSI, Wasserstein, JS}, make: newDistance, compares: true,
		unlabelled: true},
	{name: Estimate, measures: []string{Accuracy, ECE, Miss}, make: newEstimate},
	{name: Threshold, measures: []string{Accuracy, NLL, ECE, SmECE, CWECE, Confidence, Coverage}, make: newThreshold},
}

// kindOf returns the kind of a name. ok is false if there is none.
func kindOf(name string) (k kind, ok bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// Choices lists the kinds, and the measures of all kinds.
func (Config) Choices(key string) []string {
	var out []string
	for _, k := range kinds {
		switch key {
		case "kind":
			out = append(out, k.name)
		case "measure":
			for _, m := range k.measures {
				if !slices.Contains(out, m) {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// Check implements the check of conditions between keys.
func (s Config) Check(r *setting.Report) {
	s.bounds(r)
	if k, ok := kindOf(s.Kind); ok && !slices.Contains(k.measures, s.Measure) {
		r.Fail("measure", s.Measure, "kind %s takes %s", s.Kind, strings.Join(k.measures, ", "))
	}
	if s.Kind == "distance" && s.Score == "class" && s.Measure != "psi" && s.Measure != "js" {
		r.Fail("measure", s.Measure, "score class takes psi, js: classes have no order")
	}
	if s.MinRows > s.Rows {
		r.Fail("min_rows", s.MinRows, "must be at most rows, %d", s.Rows)
	}
}

// bounds checks the thresholds.
func (s Config) bounds(r *setting.Report) {
	switch {
	case s.Side == "below" && s.Clear <= s.Fire:
		r.Fail("clear", s.Clear, "must be more than fire, %s, with side below", setting.Show(s.Fire))
	case s.Side != "below" && s.Clear >= s.Fire:
		r.Fail("clear", s.Clear, "must be less than fire, %s", setting.Show(s.Fire))
	}
	if s.Kind != "threshold" && (s.Side != "above" || s.Interval || s.Age != 0) {
		r.Fail("kind", s.Kind, "side, interval and age are for kind threshold")
	}
	if s.Kind == "threshold" && s.Measure != "coverage" && s.Age != 0 {
		r.Fail("age", s.Age, "is for measure coverage")
	}
	if s.Kind == "threshold" && s.Measure == "nll" {
		return
	}
	for _, b := range []struct {
		key   string
		value float64
	}{{"fire", s.Fire}, {"clear", s.Clear}} {
		if b.value > 1 {
			r.Fail(b.key, b.value, "must be at most 1: only measure nll of kind threshold goes higher")
		}
	}
}
