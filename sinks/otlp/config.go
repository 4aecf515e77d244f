package otlp

import (
	_ "embed"
	"strings"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config says which batches are traced, and who gets their spans.
type Config struct {
	// Address of an OpenTelemetry collector, OTLP over HTTP, as http://otel-collector:4318; empty: nothing is traced.
	Endpoint string `yaml:"endpoint" format:"url"`
	// Share of the batches without a traceparent header that are traced, 0 to 1. With the header its sampled flag
	// decides.
	Ratio float64 `yaml:"ratio" default:"0" min:"0" max:"1"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.Endpoint == "" && c.Ratio > 0 {
		r.Fail("ratio", c.Ratio, "has no effect while @endpoint is empty")
	}
	if strings.ContainsAny(c.Endpoint, "?#") {
		r.Fail("endpoint", setting.Quote(c.Endpoint), "must have neither ? nor #: /v1/traces is added to it")
	}
}

// url is where spans go.
func (c Config) url() string { return strings.TrimSuffix(c.Endpoint, "/") + "/v1/traces" }
