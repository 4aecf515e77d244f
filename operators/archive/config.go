package archive

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Values of Config.Features and Config.WhenFull.
const (
	FeaturesHalf   = "float16"
	FeaturesSingle = "float32"
	WhenFullWait   = "wait"
	WhenFullDrop   = "drop"
)

// Config is the directory of labelled rows with features.
type Config struct {
	// Directory of the files, shared by all processes, or one each; empty: no archive.
	Directory string `yaml:"directory"`
	// float16: half the memory and disk, three significant digits; rows with a feature beyond ±65504 are left out and
	// counted.
	Features string `yaml:"features" default:"float16" enum:"float16|float32"`
	// Write the logits or probabilities too.
	Logits bool `yaml:"logits" default:"true"`
	// A file is complete with so many rows.
	RollRows int64 `yaml:"roll_rows" default:"1_000_000" min:"1" max:"1_000_000_000"`
	// A file is complete with so many bytes.
	RollBytes int64 `yaml:"roll_bytes" default:"256MiB" min:"1KiB" max:"1TiB"`
	// A file is complete so much event time after its first label.
	RollTime time.Duration `yaml:"roll_time" default:"10m" min:"1s"`
	// Most bytes of the directory; the oldest labels go first. 0: no bound.
	MaxBytes int64 `yaml:"max_bytes" default:"100GiB" min:"0" max:"1PiB"`
	// A file is deleted when its newest label is this much older, in event time, than the newest of its model version;
	// 0: never.
	MaxAge time.Duration `yaml:"max_age" default:"720h"`
	// Most bytes of rows in memory, by shard.
	MemoryBytes int `yaml:"memory_bytes" default:"32MiB" min:"1KiB" max:"1TiB"`
	// Complete files of a shard that could not be written to the directory before when_full holds; 0: no bound.
	PendingBytes int64 `yaml:"pending_bytes" default:"1GiB" min:"0" max:"1PiB"`
	// Without room on disk. wait: the shard stops and loses nothing; drop: rows are left out and counted.
	WhenFull string `yaml:"when_full" default:"wait" enum:"wait|drop"`
}

// FeatureBytes is how many bytes of each feature wait for the label; 0 = there is no archive.
func (c Config) FeatureBytes() int {
	switch {
	case c.Directory == "":
		return 0
	case c.Features == FeaturesHalf:
		return 2
	}
	return 4
}

// drop lets go of rows that there is no room for. Otherwise the shard waits for room.
func (c Config) drop() bool { return c.WhenFull == WhenFullDrop }

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.MaxBytes > 0 && c.MaxBytes < c.RollBytes {
		r.Fail("max_bytes", c.MaxBytes, "must be 0 or at least @roll_bytes, %d", c.RollBytes)
	}
	if c.MaxAge > 0 && c.MaxAge < c.RollTime {
		r.Fail("max_age", c.MaxAge, "must be 0 or at least @roll_time, %s", setting.Show(c.RollTime))
	}
}
