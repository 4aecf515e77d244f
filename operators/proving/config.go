package proving

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the proof of new heads in the stream.
type Config struct {
	// Run the heads of topics.heads as shadow versions, VERSION+headN.
	Shadow bool `yaml:"shadow"`
	// About the most memory of a shard for scores of shadow heads that wait for their label. When full, the oldest goes
	// out and is counted.
	MemoryBytes int `yaml:"memory_bytes" default:"32MiB" min:"1KiB" max:"1TiB"`
	// Most shadow heads of a model version; beyond it the oldest is stopped.
	Max int `yaml:"max" default:"2" min:"1" max:"16"`
	// Level of each anytime-valid test.
	Alpha float64 `yaml:"alpha" default:"0.05" above:"0" max:"0.5"`
	// Probabilities are floored at e^-bound for the tests of NLL.
	NLLBound float64 `yaml:"nll_bound" default:"5" above:"0" max:"100"`
	// Rows, sampled in both versions, before a decision.
	MinRows int64 `yaml:"min_rows" default:"1000" min:"2" max:"1_000_000_000"`
	// Rejected if it is not shown to be better after this many.
	MaxRows int64 `yaml:"max_rows" default:"50_000" min:"2" max:"1_000_000_000"`
	// Ready only if ECE rises by no more.
	MaxECERise float64 `yaml:"max_ece_rise" default:"0.01" min:"0" max:"1"`
	// Ready only if accuracy is shown not to drop by so much.
	MaxAccuracyDrop float64 `yaml:"max_accuracy_drop" default:"0.01" above:"0" max:"1"`
	// Ready only if AURC rises by no more.
	MaxAURCRise float64 `yaml:"max_aurc_rise" default:"0.01" min:"0" max:"1"`
	// Time for which a ready head is still watched, to be rolled back if it gets worse.
	Watch time.Duration `yaml:"watch" default:"168h"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.MinRows > c.MaxRows {
		r.Fail("min_rows", c.MinRows, "must be at most @max_rows, %d", c.MaxRows)
	}
}
