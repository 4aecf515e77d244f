package config

import (
	_ "embed"
	"time"

	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/archive"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/trainer/service"
	"github.com/plumbline/plumbline/web"
)

//go:embed sections.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is the whole file. Default gives its defaults.
type Config struct {
	// Connection to the brokers.
	Kafka kafkaio.Config `yaml:"kafka"`
	// Topic names, all different.
	Topics Topics `yaml:"topics"`
	// Prefix of the names of consumer groups and checkpoints.
	Group string `yaml:"group" default:"plumbline" required:"true" format:"name"`
	// Models with a fixed number of classes. Other models have the number on which their first messages agree.
	Models []Model `yaml:"models"`
	// Bounds on model versions, so that no producer can use up the memory of the others' models.
	Versions Versions `yaml:"versions"`
	// Cohorts that have statistics of their own.
	Slices slice.Config `yaml:"slices"`
	// Panes and lateness, in event time unless said otherwise.
	EventTime EventTime `yaml:"event_time"`
	// Predictions that wait for their label.
	Join join.Config `yaml:"join"`
	// Accumulators and metrics.
	Stats stats.Config `yaml:"stats"`
	// Bounded sample of labelled rows, chosen by the hash of the id.
	Sample stats.SampleConfig `yaml:"sample"`
	// Windows of the snapshots. A list here replaces the default list.
	Windows []window.Config `yaml:"windows"`
	// Anytime-valid alarm on calibration error, for every model version and slice. It is tested at every pane, and
	// the rate of false alarms stays within the bound.
	Alarm alarm.Config `yaml:"alarm"`
	// Statistics of predictions before their labels come, in snapshots of windows by time: distances of confidence
	// scores from a reference, estimates of accuracy.
	Unlabelled drift.Config `yaml:"unlabelled"`
	// Alerts on a value that stays beyond a threshold, with hysteresis. A list here replaces the default list.
	Rules []rule.Config `yaml:"rules"`
	// When and how calibrators are refitted. A candidate is published only if it is better on rows that come after
	// those it was fitted on. Times are event time.
	Refit refit.Config `yaml:"refit"`
	// Stream of calibrated probabilities.
	Calibrated apply.Config `yaml:"calibrated"`
	// Labelled rows with features, as Arrow files for fine-tuning (docs/operations.md, The archive).
	Archive archive.Config `yaml:"archive"`
	// When a model version needs a new head: if a refit did not restore calibration, or if accuracy or AURC is worse
	// than in the reference rows. Times are event time.
	Trigger finetune.TriggerConfig `yaml:"trigger"`
	// How a new head proves itself on the features in the stream before it serves.
	Heads proving.Config `yaml:"heads"`
	// `plumbline trainer`, which trains the heads that topics.finetune asks for. Times are wall clock.
	Trainer service.Config `yaml:"trainer"`
	// Receivers of alerts. The processes that run model tasks share the work. Without alertmanagers and webhooks nobody
	// is notified.
	Notify notify.Config `yaml:"notify"`
	// Database of every decision, calibrator, alert and head with its evidence, for the page, the API and `plumbline
	// history`. It is filled from the topics; a deleted database is filled again.
	History registry.Config `yaml:"history"`
	// Where and how often state is saved.
	Checkpoints pipeline.CheckpointConfig `yaml:"checkpoints"`
	// Page, API and metrics.
	HTTP web.Config `yaml:"http"`
	// What those who read the archive and dead letters can learn.
	Privacy Privacy `yaml:"privacy"`
	// Wall clock time for the last checkpoints after SIGTERM. When it is over, the process ends with exit code 1, and
	// the records since the previous checkpoints are read again.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" default:"25s" min:"1s"`
}

// Topics are the names of the Kafka topics.
type Topics struct {
	// Predictions: Arrow IPC streams.
	Logits string `yaml:"logits" default:"plumbline.logits" required:"true" format:"topic"`
	// Late labels, partitioned like the logits; empty: labels come with the logits.
	Labels string `yaml:"labels" default:"plumbline.labels" format:"topic"`
	// Increments from shards to model tasks.
	Panes string `yaml:"panes" default:"plumbline.panes" required:"true" format:"topic"`
	// Window metrics, JSON.
	Snapshots string `yaml:"snapshots" default:"plumbline.snapshots" required:"true" format:"topic"`
	// Calibrators with their evidence, JSON, compacted.
	Calibrators string `yaml:"calibrators" default:"plumbline.calibrators" required:"true" format:"topic"`
	// Alerts, JSON, compacted.
	Alerts string `yaml:"alerts" default:"plumbline.alerts" required:"true" format:"topic"`
	// Every decision, calibrator, alert and head with its evidence, JSON, kept for ever. The history is rebuilt from
	// it. Empty: not written.
	Decisions string `yaml:"decisions" default:"plumbline.decisions" format:"topic"`
	// Requests for new heads, JSON; used if trigger.enabled is true.
	Finetune string `yaml:"finetune" default:"plumbline.finetune" format:"topic"`
	// Heads, jobs, verdicts and orders, JSON, compacted; used if trigger.enabled or heads.shadow is true.
	Heads string `yaml:"heads" default:"plumbline.heads" format:"topic"`
	// Calibrated probabilities; used if calibrated.enabled is true.
	Calibrated string `yaml:"calibrated" default:"plumbline.calibrated" format:"topic"`
	// Messages that were refused, whole or some rows of them.
	DeadLetter string `yaml:"deadletter" default:"plumbline.deadletter" required:"true" format:"topic"`
	// Checkpoints, compacted; used if checkpoints.store is topic.
	Checkpoints string `yaml:"checkpoints" default:"plumbline.checkpoints" format:"topic"`
	// Predictions of producers that cannot split batches by id, such as plumbline.logits-unkeyed. The repartition
	// stage sends them to topics.logits. Empty: none.
	LogitsUnkeyed string `yaml:"logits_unkeyed" format:"topic"`
	// Labels of such producers. The repartition stage sends them to topics.labels. Empty: none.
	LabelsUnkeyed string `yaml:"labels_unkeyed" format:"topic"`
}

// Model declares the classes of a model.
type Model struct {
	// Name of the model, as in the messages.
	Name string `yaml:"name" required:"true"`
	// Number of classes K, 2 or more; 0: the number on which the first messages agree.
	Classes int `yaml:"classes" min:"0" max:"1_000_000"`
}

// Versions bounds model versions.
type Versions struct {
	// Model versions that a shard, and a model task, know at a time. Beyond it a new one takes the place of the one
	// that is silent longest, if that is an hour or more; otherwise its rows are rejected (models). 0: no bound.
	Max int `yaml:"max" default:"1000" min:"0" max:"1_000_000"`
	// New model versions of a shard in a minute, by the records' timestamps; those of ten minutes may come at once.
	// The rows of others are rejected (models). 0: no bound.
	NewPerMinute int `yaml:"new_per_minute" default:"30" min:"0" max:"1_000_000"`
}

// Privacy keeps ids from being guessed.
type Privacy struct {
	// File with a secret of 16 bytes or more, the same for all processes of the group. Archived ids are then hashes
	// that only its holder can make (HMAC-SHA-256, 16 bytes); otherwise whoever guesses an id can make its hash. Dead
	// letters quote no value and no header, and have the hash in place of a key.
	IDKeyFile string `yaml:"id_key_file"`
}

// EventTime configures panes and lateness.
type EventTime struct {
	// Length of a pane, the unit of all windows.
	Pane time.Duration `yaml:"pane" default:"10s" min:"100ms"`
	// A row that is later than the newest row by at most this still counts in its own pane.
	AllowedLateness time.Duration `yaml:"allowed_lateness" default:"10s"`
	// A row is rejected and counted if its event time is further than this ahead of its Kafka timestamp, or that
	// timestamp ahead of the clock. A model of several in a shard is waited for so long. 0: no row is rejected, and
	// models share one watermark.
	MaxAhead time.Duration `yaml:"max_ahead" default:"5m"`
	// Wall clock time: an input without messages for this long does not hold back the watermark; 0: it always does.
	IdleTimeout time.Duration `yaml:"idle_timeout" default:"1m"`
	// A model version is forgotten if it has no rows for this long while another version of the model has some: its
	// statistics end, and its calibrator stays in force. A pause of the whole model counts as a day at most. A version
	// whose labels may still come by join.wait is not forgotten. 0: never.
	ForgetAfter time.Duration `yaml:"forget_after" default:"720h"`
}
