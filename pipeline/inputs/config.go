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
	// Topic with the records. Any partition, any key.
	Topic string `yaml:"topic" required:"true" format:"topic"`
	// Whether a row is a prediction, with or without its label, or a label that came later.
	Rows string `yaml:"rows" default:"predictions" enum:"predictions|labels"`
	// Format of the records' values. kserve and seldon are what their payload loggers send; v2 is the Open Inference
	// Protocol.
	Format string `yaml:"format" default:"json"`
	// Model of rows that name none.
	Model string `yaml:"model"`
	// Version of rows that name none.
	Version string `yaml:"version"`
	// Names of the classes in their order, if labels are names.
	Classes []string `yaml:"classes"`
	// Where the columns are in a record: paths such as request.id or outputs[].score, where [] says that each item is
	// a row. header:NAME is a Kafka header, event:NAME an attribute of a CloudEvent, record:key the key. Empty: the
	// format's default, for json the field of the column's name.
	Columns Columns `yaml:"columns"`
}

// Columns are the paths of the columns.
type Columns struct {
	// Id that joins a prediction and its label. Of several rows with one id, row i gets ID/i.
	ID string `yaml:"id"`
	// Event time: RFC 3339, or a number since 1970 in s, ms, µs or ns, whichever gives a year from 1973 to 5138.
	TS string `yaml:"ts"`
	// List of raw scores, or one path for each class, with commas between them.
	Logits string `yaml:"logits"`
	// List of probabilities, or one path for each class.
	Probs string `yaml:"probs"`
	// Raw score of a binary classifier.
	Logit string `yaml:"logit"`
	// Probability of class 1 of a binary classifier.
	Prob string `yaml:"prob"`
	// Class: a number, true or false, or one of the names in classes.
	Label string `yaml:"label"`
	// List of the head's inputs, or one path for each.
	Features string `yaml:"features"`
	// Model.
	Model string `yaml:"model"`
	// Version of the model.
	Version string `yaml:"version"`
	// Top confidence that was served.
	Served string `yaml:"served"`
	// Sampling weight.
	Weight string `yaml:"weight"`
	// Slice columns that are not fields of their own name.
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
