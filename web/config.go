package web

import (
	_ "embed"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the page, the API and the metrics.
type Config struct {
	// Address to listen on; empty: off.
	Listen string `yaml:"listen" default:"127.0.0.1:8080" format:"listen"`
	// Names that requests may use for this server, beside addresses, localhost, the name in listen and the machine's;
	// "*": every name; "*.x": those below x.
	Hosts []string `yaml:"hosts"`
	// File with TLS and users in the format of Prometheus exporters; empty: plain HTTP for everyone who can connect.
	WebConfig string `yaml:"web_config_file"`
	// Slices of a model version and window in /metrics: those that fire, then the worst.
	Slices int `yaml:"metrics_slices" default:"20" min:"1" max:"10_000"`
	// Serve Go profiles at /debug/pprof/ to everyone who can reach the port.
	Pprof bool `yaml:"pprof"`
	// Accept orders over HTTP: pause, calibrators, heads, trainings. Unless listen is a loopback address,
	// web_config_file must name users or ask for client certificates.
	Control bool `yaml:"control"`
	// Accept predictions and labels over HTTP, for topics.logits and topics.labels, from the same people as control.
	Ingest bool `yaml:"ingest"`
}
