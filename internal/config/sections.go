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
	"github.com/plumbline/plumbline/operators/pair"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/inputs/schemas"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/sinks/otlp"
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
	// Topics with records in other formats than Arrow, or in Arrow under any key (docs/schema.md, Inputs),
	// beside topics.logits and topics.labels.
	Inputs []inputs.Config `yaml:"inputs"`
	// Registry that knows the schemas of records in avro and protobuf.
	SchemaRegistry schemas.Config `yaml:"schema_registry"`
	// Prefix of the names of consumer groups and checkpoints.
	Group string `yaml:"group" default:"plumbline" required:"true" format:"name"`
	// Models with a fixed number of classes.
	Models []Model `yaml:"models"`
	// Bounds on model versions, so that no producer can use up the memory of the others' models.
	Versions Versions `yaml:"versions"`
	// Cohorts that have statistics of their own.
	Slices slice.Config `yaml:"slices"`
	// Panes and lateness, in event time unless said otherwise.
	EventTime EventTime `yaml:"event_time"`
	// Requests and responses that wait for each other (inputs.request).
	Pair pair.Config `yaml:"pair"`
	// Predictions that wait for their label.
	Join join.Config `yaml:"join"`
	// Accumulators and metrics.
	Stats stats.Config `yaml:"stats"`
	// Bounded sample of labelled rows, chosen by the hash of the id, for refits and estimates.
	Sample stats.SampleConfig `yaml:"sample"`
	// Windows of the snapshots.
	Windows []window.Config `yaml:"windows"`
	// Alarm on calibration error and accuracy, for every model version and slice, with a bounded rate of false alarms.
	Alarm alarm.Config `yaml:"alarm"`
	// Statistics before labels, in snapshots of windows by time: distances of confidence scores from a reference,
	// estimates of accuracy.
	Unlabelled drift.Config `yaml:"unlabelled"`
	// Alerts on a value that stays beyond a threshold (docs/operations.md, Rules).
	Rules []rule.Config `yaml:"rules"`
	// When and how calibrators are refitted. Times are event time.
	Refit refit.Config `yaml:"refit"`
	// Stream of calibrated probabilities.
	Calibrated apply.Config `yaml:"calibrated"`
	// Labelled rows with features, as Arrow files for fine-tuning (docs/operations.md, The archive).
	Archive archive.Config `yaml:"archive"`
	// When a model version needs a new head (docs/train.md). Times are event time.
	Trigger finetune.TriggerConfig `yaml:"trigger"`
	// How a new head is tested in the stream before it serves.
	Heads proving.Config `yaml:"heads"`
	// Settings of `plumbline trainer`. Times are wall clock.
	Trainer service.Config `yaml:"trainer"`
	// Receivers of alerts. Without alertmanagers and webhooks nobody is notified.
	Notify notify.Config `yaml:"notify"`
	// Database of every decision, filled from topics.decisions (docs/operations.md, The history).
	History registry.Config `yaml:"history"`
	// Where and how often state is saved.
	Checkpoints pipeline.CheckpointConfig `yaml:"checkpoints"`
	// Page, API and metrics.
	HTTP web.Config `yaml:"http"`
	// Traces of sampled batches, from their record to the outputs (docs/operations.md, Traces).
	Tracing otlp.Config `yaml:"tracing"`
	// What those who read the archive and dead letters can learn.
	Privacy Privacy `yaml:"privacy"`
	// Wall clock time for the last checkpoints after SIGTERM. After it the process ends with exit code 1, and the
	// records since the checkpoints before are read again.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout" default:"25s" min:"1s"`
}

// Splits reports whether a deployment begins with topics of its own, into which it splits those of producers by id.
func (c *Config) Splits() bool {
	return len(c.Inputs) > 0 || !c.Topics.Keyed
}

// InputTopics are those of inputs, and of the requests of these.
func (c *Config) InputTopics() (topics []string) {
	for _, in := range inputs.WithRequests(c.Inputs) {
		topics = append(topics, in.Topic)
	}
	return topics
}

// Topics are the names of the Kafka topics.
type Topics struct {
	// Predictions: Arrow IPC streams.
	Logits string `yaml:"logits" default:"plumbline.logits" required:"true" format:"topic"`
	// Late labels; empty: all labels come with the logits.
	Labels string `yaml:"labels" default:"plumbline.labels" format:"topic"`
	// Producers send every row of logits and labels to the partition of its id (docs/schema.md, Partitions), so shards
	// read these topics themselves. false: any partition, any key; plumbline splits them by id into topics of its own,
	// which writes every row once more. Decided when a group begins.
	Keyed bool `yaml:"keyed"`
	// Increments from shards to model tasks.
	Panes string `yaml:"panes" default:"plumbline.panes" required:"true" format:"topic"`
	// Window metrics, JSON.
	Snapshots string `yaml:"snapshots" default:"plumbline.snapshots" required:"true" format:"topic"`
	// Calibrators with their evidence, JSON, compacted.
	Calibrators string `yaml:"calibrators" default:"plumbline.calibrators" required:"true" format:"topic"`
	// Alerts, JSON, compacted.
	Alerts string `yaml:"alerts" default:"plumbline.alerts" required:"true" format:"topic"`
	// Every decision with its evidence, JSON, kept for ever: the source of the history. Empty: not written.
	Decisions string `yaml:"decisions" default:"plumbline.decisions" format:"topic"`
	// Requests for heads, JSON; used if trigger.enabled is true.
	Finetune string `yaml:"finetune" default:"plumbline.finetune" format:"topic"`
	// Heads, jobs, verdicts and orders, JSON, compacted; used if trigger.enabled or heads.shadow is true.
	Heads string `yaml:"heads" default:"plumbline.heads" format:"topic"`
	// Calibrated probabilities; used if calibrated.enabled is true.
	Calibrated string `yaml:"calibrated" default:"plumbline.calibrated" format:"topic"`
	// Messages that were refused, whole or some rows of them.
	DeadLetter string `yaml:"deadletter" default:"plumbline.deadletter" required:"true" format:"topic"`
	// Checkpoints, compacted; used if checkpoints.store is topic.
	Checkpoints string `yaml:"checkpoints" default:"plumbline.checkpoints" format:"topic"`
}

// Model declares the classes of a model.
type Model struct {
	// Name of the model, as in the messages.
	Name string `yaml:"name" required:"true"`
	// Number of classes K, 2 or more; 0, or a model that is not listed: the number on which its first messages agree.
	Classes int `yaml:"classes" min:"0" max:"1_000_000"`
}

// Versions bounds model versions.
type Versions struct {
	// Model versions that a shard, and a model task, know at a time. A new one replaces one that is silent for an hour;
	// else its rows are rejected (models). A tenth is for models with fewer. 0: no bound.
	Max int `yaml:"max" default:"1000" min:"0" max:"1_000_000"`
	// New model versions of a shard in a minute, by records' timestamps; those of ten minutes may come at once, and two
	// of each known model. 0: no bound.
	NewPerMinute int `yaml:"new_per_minute" default:"30" min:"0" max:"1_000_000"`
}

// Privacy keeps ids from being guessed.
type Privacy struct {
	// File with a secret of 16 bytes or more, the same for all processes of the group. Archived ids are then
	// HMAC-SHA-256 hashes (16 bytes), and dead letters quote no value and no header, and hash the key.
	IDKeyFile string `yaml:"id_key_file"`
}

// EventTime configures panes and lateness.
type EventTime struct {
	// Length of a pane, the unit of all windows. Calibrators and alarms change at its end: shorter for thousands of
	// rows a second.
	Pane time.Duration `yaml:"pane" default:"10s" min:"100ms"`
	// A row that is later than the newest row by at most this still counts in its own pane.
	AllowedLateness time.Duration `yaml:"allowed_lateness" default:"10s"`
	// A row is rejected if its event time is further than this ahead of its Kafka timestamp, or that timestamp ahead of
	// the clock; also how long a shard waits for a silent model. 0: neither.
	MaxAhead time.Duration `yaml:"max_ahead" default:"5m"`
	// Wall clock time after which an input without messages no longer holds back the watermark; 0: it always does.
	IdleTimeout time.Duration `yaml:"idle_timeout" default:"1m"`
	// The alerts of a model version are closed, until it has predictions again, when it had none for this long while
	// another version of the model had some. 0: never.
	SilentAfter time.Duration `yaml:"silent_after" default:"1h"`
	// A model version is forgotten after this long without rows while another version of the model has some: its
	// statistics end, its calibrator stays in force. While those of a model take over 256 MiB, an hour (or join.wait)
	// is enough. 0: never.
	ForgetAfter time.Duration `yaml:"forget_after" default:"720h"`
}
