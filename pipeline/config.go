package pipeline

import (
	_ "embed"
	"time"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (CheckpointConfig) Declaration() string { return configSource }

// Values of checkpoints.store.
const (
	StoreDirectory = "directory"
	StoreTopic     = "topic"
)

// CheckpointConfig is where and how often state is saved.
type CheckpointConfig struct {
	// directory: checkpoints.dir; topic: topics.checkpoints, compacted, for processes that share no directory.
	Store string `yaml:"store" default:"directory" enum:"directory|topic"`
	// Directory (relative: to the working directory), kept over restarts, shared by all processes.
	Dir string `yaml:"dir" default:"./state" required:"true"`
	// Wall clock between checkpoints; outputs become visible at checkpoints.
	Interval time.Duration `yaml:"interval" default:"5s" min:"10ms"`
	// A shard that has taken this many rows takes a checkpoint earlier; 0: by time only.
	Rows int64 `yaml:"rows" min:"0" max:"1_000_000_000_000"`
	// Checkpoints kept. The previous one is used if the newest is damaged.
	Keep int `yaml:"keep" default:"2" min:"2" max:"100"`
	// Times in a row that a record may end its task or process before it is skipped with a dead letter; 0: never
	// skipped.
	SkipAfter int `yaml:"skip_after" default:"3" min:"0" max:"1_000_000"`
}

// ReservedVersions is the share of versions.max, one in so many, that is kept for models with fewer versions than that:
// a model whose versions are made up, a new one for each request, leaves room for a new version of every other model.
const ReservedVersions = 10

// VersionsFor is how many model versions there may be when one of a model that has own versions comes.
func VersionsFor(most, own int) int {
	if reserved := most / ReservedVersions; own >= reserved {
		return most - reserved
	}
	return most
}
