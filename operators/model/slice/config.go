package slice

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

// Config lists the cohort columns and limits their values.
type Config struct {
	// Text columns whose values are cohorts, such as region.
	Columns []string `yaml:"columns"`
	// Values of a column, by model version, that have statistics of their own: those with the most predictions. The
	// rest are pooled as ~other.
	MaxKeys int `yaml:"max_keys" default:"1000" min:"1" max:"1_000_000"`
	// How often, in event time, slices get their rows, such as 1m where there are thousands: more often if slides of
	// windows need it; 0: at each pane.
	Pane time.Duration `yaml:"pane" default:"0s" min:"0s"`
	// Half-life, in event time, of the counts that choose them.
	HalfLife time.Duration `yaml:"half_life" default:"1h" min:"1m"`
}

// reserved are columns that the wire schema or that of the archive defines; they cannot be cohorts.
var reserved = []string{
	"id", "ts", "logits", "logit", "probs", "prob", "label", "label_ts", "features", "model", "version", "served",
	"weight",
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	columns := r.Distinct("columns", "")
	for i, col := range c.Columns {
		columns(i, col)
		fail := func(why string) { r.Fail(setting.Item("columns", i), setting.Quote(col), why) }
		switch {
		case slices.Contains(reserved, col):
			fail("is a column of the schema, not a cohort")
		case strings.TrimSpace(col) != col:
			fail("must be a name without spaces around it")
		case strings.Contains(col, "="):
			fail("must be without =, which ends the column in the name of a slice, such as region=eu")
		}
	}
}
