package inputs

import (
	_ "embed"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is a topic with records as they are, and what their fields mean.
type Config struct {
	// Topic with the records.
	Topic string `yaml:"topic" required:"true" format:"topic"`
	// Whether a row is a prediction, with or without its label, or a late label.
	Rows string `yaml:"rows" default:"predictions" enum:"predictions|labels"`
	// Format of the records' values.
	Format string `yaml:"format" default:"json"`
	// Model of rows that name none.
	Model string `yaml:"model"`
	// Version of rows that name none.
	Version string `yaml:"version"`
	// Names of the classes in order, if labels are names.
	Classes []string `yaml:"classes"`
	// Paths of the columns in a record. Empty: the format's default, for json the field of the column's name.
	Columns Columns `yaml:"columns"`
}

// Columns are the paths of the columns.
type Columns struct {
	// Id that joins a prediction and its label.
	ID string `yaml:"id"`
	// Event time: RFC 3339, or a number since 1970 in s, ms, µs or ns.
	TS string `yaml:"ts"`
	// Raw scores: a list, or one path for each class, separated by commas.
	Logits string `yaml:"logits"`
	// Probabilities, likewise.
	Probs string `yaml:"probs"`
	// Raw score of a binary classifier.
	Logit string `yaml:"logit"`
	// Probability of class 1 of a binary classifier.
	Prob string `yaml:"prob"`
	// Class: a number, true or false, or one of the names in classes.
	Label string `yaml:"label"`
	// Inputs of the head, likewise.
	Features string `yaml:"features"`
	// Model.
	Model string `yaml:"model"`
	// Version of the model.
	Version string `yaml:"version"`
	// Top confidence that was served.
	Served string `yaml:"served"`
	// Sampling weight.
	Weight string `yaml:"weight"`
	// Slice columns whose field has another name.
	Slices []SliceColumn `yaml:"slices"`
}

// SliceColumn is where a slice column is.
type SliceColumn struct {
	// One of slices.columns.
	Column string `yaml:"column" required:"true"`
	// Its path.
	Path string `yaml:"path" required:"true"`
}

// Choices are the formats.
func (Config) Choices(key string) []string {
	if key != "format" {
		return nil
	}
	return formatNames()
}

// Registered reports whether records name their schemas by number.
func (c *Config) Registered() bool { return formats[c.Format].registered }

// Kind is what the rows are.
func (c *Config) Kind() arrowio.Kind {
	if c.Rows == "labels" {
		return arrowio.Labels
	}
	return arrowio.Predictions
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if _, known := formats[c.Format]; !known || c.Topic == "" {
		return // reported already
	}
	if _, err := compile(&c, nil); err != nil {
		key := "columns"
		if err.column != "" && !strings.Contains(err.column, " ") {
			key += "." + err.column
		}
		r.Fail(key, setting.Quote(err.path), "%s", err.why)
	}
}
