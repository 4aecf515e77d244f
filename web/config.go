package web

import (
	_ "embed"
)

//go:embed config.go
var configSource string

// Source is the file with the comments that document the keys.
func (Config) Source() string { return configSource }

// Config is the page, the API and the metrics.
type Config struct {
	// Address to listen on; empty: off.
	Listen string `yaml:"listen" default:"127.0.0.1:8080" format:"listen"`
	// File with TLS and users in the format of Prometheus exporters; empty: plain HTTP for everyone who can connect.
	WebConfig string `yaml:"web_config_file"`
	// Slices of a model version and window in /metrics: those that fire, then the worst. The API has all.
	Slices int `yaml:"metrics_slices" default:"20" min:"1" max:"10_000"`
	// Serve Go profiles at /debug/pprof/ too. They describe the process to everyone who can reach the port.
	Pprof bool `yaml:"pprof"`
	// Accept pause and resume, orders about calibrators and heads, and the cancelling of trainings over HTTP, from
	// everyone who can reach the port and is admitted by web_config_file.
	Control bool `yaml:"control"`
}
