package inputs

import (
	_ "embed"
	"slices"
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
	// What predictions get of their requests.
	Request Request `yaml:"request"`
}

// Request is where requests are, and what of them a prediction gets. The format is that of the predictions.
type Request struct {
	// Their topic. Empty: that of the predictions (kserve, seldon).
	Topic string `yaml:"topic" format:"topic"`
	// Paths in a request; one of features, weight and slices at least.
	Columns RequestColumns `yaml:"columns"`
}

// RequestColumns are the paths of a request's columns.
type RequestColumns struct {
	// The prediction's.
	ID string `yaml:"id"`
	// Event time.
	TS string `yaml:"ts"`
	// The prediction's.
	Model string `yaml:"model"`
	// Inputs of the head.
	Features string `yaml:"features"`
	// Sampling weight.
	Weight string `yaml:"weight"`
	// Cohorts.
	Slices []SliceColumn `yaml:"slices"`
}

// requests is what rows are in the input of requests.
const requests = "requests"

// Requested reports whether predictions get something of their requests.
func (c *Config) Requested() bool {
	r := &c.Request.Columns
	return r.Features != "" || r.Weight != "" || len(r.Slices) > 0
}

// Requests is the input of the requests.
func (c *Config) Requests() Config {
	of, r := *c, &c.Request.Columns
	of.Rows, of.Request = requests, Request{}
	of.Columns = Columns{ID: r.ID, TS: r.TS, Model: r.Model, Features: r.Features, Weight: r.Weight, Slices: r.Slices}
	if c.Request.Topic != "" {
		of.Topic = c.Request.Topic
	}
	return of
}

// apart reports whether requests have a topic of their own.
func (c *Config) apart() bool { return c.Request.Topic != "" && c.Request.Topic != c.Topic }

// WithRequests are inputs, with those of requests that have topics of their own.
func WithRequests(all []Config) []Config {
	out := slices.Clone(all)
	for i := range all {
		if c := &all[i]; c.Requested() && c.apart() {
			out = append(out, c.Requests())
		}
	}
	return out
}

// side says which part of predictions the rows are.
func (c *Config) side() arrowio.Side {
	switch {
	case c.Rows == requests:
		return arrowio.Request
	case c.Requested():
		return arrowio.Response
	}
	return arrowio.Whole
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
	c.checkRequest(r)
	c.checkPaths(r, "columns")
}

// checkRequest checks request.
func (c *Config) checkRequest(r *setting.Report) {
	switch {
	case !c.Requested():
		if c.Request.Topic != "" {
			r.Fail("request.topic", setting.Quote(c.Request.Topic),
				"has no effect without one of request.columns.features, weight and slices")
		}
		return
	case c.Kind() == arrowio.Labels:
		r.Fail("request", "", "has no effect on rows that are labels")
	case c.Format == formatArrow:
		r.Fail("request", "", "has no effect on format arrow: producers mark requests and responses themselves")
	case !c.apart() && !formats[c.Format].logger:
		r.Fail("request.topic", setting.Quote(c.Request.Topic),
			"must be another topic: only formats kserve and seldon say which records are requests")
	default:
		of := c.Requests()
		of.checkPaths(r, "request.columns")
	}
}

// checkPaths checks the paths of columns.
func (c *Config) checkPaths(r *setting.Report, key string) {
	if _, err := compile(c, nil); err != nil {
		if err.column != "" && !strings.Contains(err.column, " ") {
			key += "." + err.column
		}
		r.Fail(key, setting.Quote(err.path), "%s", err.why)
	}
}
