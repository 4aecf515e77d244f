package drift

import (
	_ "embed"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config configures the statistics of predictions before their labels come.
type Config struct {
	// Compute them.
	Enabled bool `yaml:"enabled" default:"true"`
	// pinned: the first reference_rows rows; rolling: replaced by the next reference_rows rows.
	Reference string `yaml:"reference" default:"pinned" enum:"pinned|rolling"`
	// Number of predictions, and of labelled rows, in the reference.
	ReferenceRows int64 `yaml:"reference_rows" default:"10_000" min:"100" max:"1_000_000_000"`
	// Share of windows above the thresholds of distances if nothing changes.
	Alpha float64 `yaml:"alpha" default:"0.001" above:"0" max:"0.5"`
	// Compute them for every slice too.
	Slices bool `yaml:"slices" default:"true"`
	// Count rows by predicted class, for distances of class shares and estimates under label shift: none; for each
	// model version; for every slice too.
	Classes string `yaml:"classes" default:"model" enum:"none|model|slices"`
}

// slicesToo is the value of Config.Classes for which slices count rows by class, too.
const slicesToo = "slices"

// ReadsRows reports whether the stage reads the sampled rows of a key. Those of a slice serve its class counts only.
func (c *Config) ReadsRows(slice string) bool { return slice == "" || c.Classes == slicesToo }

// References.
const (
	Pinned  = "pinned"
	Rolling = "rolling"
)
