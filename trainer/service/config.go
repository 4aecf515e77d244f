package service

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the process that trains heads, `plumbline trainer`. Times are wall clock.
type Config struct {
	// Name of the process; each has its own. Empty: the host's name.
	Name string `yaml:"name" format:"name"`
	// Directory of jobs. Trainers that share it continue each other's jobs.
	Dir string `yaml:"dir" default:"./trainer" required:"true"`
	// Directory of archived rows; empty: archive.directory, or files.
	Archive string `yaml:"archive"`
	// Longest wait for the archive to have all rows of a request.
	Settle time.Duration `yaml:"settle" default:"15m"`
	// Files and directories to train on without an archive: Arrow, Parquet, CSV or npz with features, label and ts.
	// Files that name a model and version must match the request's, without +headN.
	Files []string `yaml:"files"`
	// The heads that serve, from which trainings start.
	Heads []ServingHead `yaml:"heads"`
	// What computes. auto: cuda if there is a device, else go.
	Backend string `yaml:"backend" default:"auto" enum:"auto|cuda|gorgonia|go"`
	// Number of the CUDA device; a process uses one.
	Device int `yaml:"device" min:"0" max:"1023"`
	// Command that trains in place of the recipes (docs/train.md); empty: none.
	Command []string `yaml:"command" blank:"true"`
	// Most rows of a training, the newest of the request's range; 0: all.
	MaxRows int `yaml:"max_rows" default:"1_000_000" min:"0" max:"1_000_000_000"`
	// Most bytes of features in memory; larger sets stay in their files.
	MemoryBytes int `yaml:"memory_bytes" default:"1GiB" min:"0" max:"1PiB"`
	// Keep of each class at most this many times the training rows of the rarest; 0: all. At least 1.
	Balance float64 `yaml:"balance" min:"0" max:"1_000_000_000"`
	// Newest share of the rows, used for validation.
	Validation float64 `yaml:"validation" default:"0.2" above:"0" max:"0.9"`
	// Attempts without progress before a job counts as failed.
	Attempts int `yaml:"attempts" default:"3" min:"1" max:"1000"`
	// Longest run of one attempt.
	Timeout time.Duration `yaml:"timeout" default:"6h" min:"1s"`
	// Time between the heartbeats of a job.
	Heartbeat time.Duration `yaml:"heartbeat" default:"5s" min:"100ms"`
	// A job without a heartbeat for this long is taken over; at least twice heartbeat.
	LostAfter time.Duration `yaml:"lost_after" default:"1m" min:"200ms"`
	// Larger heads are not in their record: shards read them from trainer.dir, which they must share. At most half of
	// kafka.message_max_bytes.
	InlineBytes int `yaml:"inline_bytes" default:"4MiB" min:"0" max:"512MiB"`
	// Directories of finished jobs that are kept.
	Keep int `yaml:"keep" default:"20" min:"1" max:"100_000"`
}

// ServingHead names the file of a head that serves.
type ServingHead struct {
	// Model name.
	Model string `yaml:"model" required:"true"`
	// Version; empty: every one without an entry or a head of topics.heads.
	Version string `yaml:"version"`
	// Its .safetensors file.
	File string `yaml:"file" required:"true"`
}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if c.LostAfter < 2*c.Heartbeat {
		r.Fail("lost_after", c.LostAfter, "must be at least twice @heartbeat, %s", setting.Show(c.Heartbeat))
	}
	if c.Balance > 0 && c.Balance < 1 {
		r.Fail("balance", c.Balance, "must be 0 or at least 1")
	}
}
