package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/backup"
	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/engine/trouble"
	"github.com/plumbline/plumbline/internal/faulty"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/pair"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/inputs/schemas"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/sinks/archive"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/sinks/metrics"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/sinks/otlp"
	"github.com/plumbline/plumbline/web"
)

// Engine builds shards and model tasks from a configuration and knows those that run in this process.
type Engine struct {
	Config    config.Config
	Log       *slog.Logger
	published *apply.Published
	classes   *validate.Ordered // numbers of classes that were settled for all shards
	fits      refit.Pool
	History   *history.History
	Tuning    *heads.State
	Heads     *shadow.Heads          // that shards run as shadows
	Past      *decisionlog.Store     // nil = no history in a database
	Archive   *archive.Archive       // nil = none is configured
	replaying bool                   // files or topics are read again
	Unseen    bool                   // nobody reads snapshots: they are not made
	Anew      string                 // with what a deployment begins without its state (pipeline.Runner)
	Listen    func(pipeline.Message) // sees every output of the model tasks; nil = nobody
	notified  notify.Counts
	following atomic.Bool  // the calibrators topic has not been read to its end yet
	orders    web.Orders   // nil = no Kafka
	ingest    http.Handler // of rows; nil = they are refused
	troubles  *trouble.Watch
	latencies metrics.Latencies
	tracer    *tracing.Tracer // nil = nothing is traced
	spans     *otlp.Exporter  // of the tracer
	Listener  net.Listener    // of the page, bound already; nil = bind http.listen

	book *scale.Book // of how many shards the deployment is one; nil = no Kafka

	// ends asks the brokers whether logs end at marks; nil = no Kafka.
	ends func(context.Context, []kafkaio.Mark) (bool, error)

	Pauser
	silence
	WatchEvery time.Duration // between questions whether topics were made again
	// Restoring is called before a task is restored, and done after; nil = nobody wants to know.
	Restoring func() (done func())

	registry func() (*schemas.Client, error)

	smallTopics []kafkaclient.SmallTopic // as of the start
	begun       atomic.Bool              // a run has what its start sets: book, smallTopics, ends

	mu sync.Mutex // of past
	running
	attempts *attempts.Tasks
}

// metadataInterval is how often a run asks whether topics were made again.
const metadataInterval = 10 * time.Second

// running has the tasks of this process and their sources, by task name.
type running struct {
	mu      sync.Mutex
	tasks   map[string]reporter
	sources map[string]*kafkaio.Source // what the tasks read, by the same names
	due     assignments
}

type reporter interface {
	Status() *pipeline.TaskStatus
}

// New returns an engine without tasks; Run, or a Replay, adds them.
func New(cfg config.Config, log *slog.Logger) *Engine {
	rt := &Engine{Config: cfg, Log: log, fits: refit.NewPool(cfg.Refit.Workers),
		published: apply.NewPublished(forgetAfter(&cfg)), classes: validate.NewOrdered(),
		History: history.New(history.Config{}), WatchEvery: metadataInterval,
		running: running{tasks: map[string]reporter{}, sources: map[string]*kafkaio.Source{}}}
	rt.attempts = attempts.New(attempts.Config{SkipAfter: cfg.Checkpoints.SkipAfter,
		Dir: filepath.Join(rt.workDir(), "attempts", url.PathEscape(cfg.Group)), Log: log})
	rt.latencies = metrics.NewLatencies()
	rt.troubles = &trouble.Watch{Log: log, Wait: cfg.Join.Wait, Blind: func() bool { return refused(rt) }}
	rt.troubles.Keyed.Store(!cfg.Splits())
	rt.registry = sync.OnceValues(func() (*schemas.Client, error) { return schemas.New(cfg.SchemaRegistry) })
	rt.Archive = rt.openArchive()
	rt.Heads = shadow.NewHeads(cfg.Heads)
	rt.Tuning = heads.New(rt.Heads, log)
	return rt
}

// NewShard builds shard id of so many, with empty state.
func (rt *Engine) NewShard(id, of, panesPartitions int) (*pipeline.Shard, error) {
	c := &rt.Config
	archived, err := idKey(c.Privacy.IDKeyFile)
	if err != nil {
		return nil, err
	}
	pane := int64(c.EventTime.Pane)
	inputs := inputsOf(c)
	counts := pipeline.NewCounts()
	clock := rt.watermark(inputs)
	host := pipeline.Host{Out: newOut(rt, counts, archived), Outbox: pipeline.NewOutbox(id, of, pane, panesPartitions),
		Counts: counts, Clocks: clock.Clocks, Log: rt.Log}
	stages := rt.stages(id)
	if stages.Archive != nil {
		stages.Archive.ID = archived
	}
	return pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: inputs, PaneLength: pane,
		Watermark: clock,
		Decoder: faulty.Decoder(arrowio.NewDecoder(arrowio.Options{Slices: c.Slices.Columns,
			MaxMessageBytes: c.Kafka.MessageMax})),
		Stages: operators.Chain(stages, host), CheckpointRows: c.Checkpoints.Rows,
		CalibratedAtOnce: c.Calibrated.AtOnce, Host: host}), nil
}

// newOut returns the collector of a task's dead letters and calibrated messages. A dead letter fits into a message. If
// ids are hashed, it has only the hash of the record's key: nobody can tell which of its bytes are ids.
func newOut(rt *Engine, counts *pipeline.Counts, hashed func(arrowio.ID) arrowio.ID) *pipeline.Out {
	c := &rt.Config.Kafka
	out := pipeline.NewOut(counts).Quote(min(c.DeadLetter, c.MessageMax/2), rt.Log)
	out.Tell(rt.troubles.Refused)
	if hashed != nil {
		out.Hide(func(key []byte) []byte {
			id := hashed(arrowio.HashID(string(key)))
			return hex.AppendEncode(nil, id[:])
		})
	}
	return out
}

// stages returns the configuration of a shard's operators.
func (rt *Engine) stages(shard int) operators.Config {
	c := &rt.Config
	pane := int64(c.EventTime.Pane)
	out := operators.Config{
		Validate: rulesOf(rt),
		Pair:     &pair.Options{Config: c.Pair, Slices: c.Slices.Columns, Shard: shard},
		Join:     rt.joinOptions(shard),
		Archive:  rt.archiveOptions(shard),
		Stats: &stats.Options{
			Acc:     c.Stats.Accumulators(c.Sample, c.Kafka.MessageMax),
			Pane:    pane,
			Turns:   c.SliceTurns(),
			MaxKeys: c.Slices.MaxKeys,
			Classes: classesOf(c),
		},
	}
	if c.Calibrated.Enabled {
		out.Apply = &apply.Options{Config: c.Calibrated, Published: rt.published,
			MaxBytes: c.Kafka.MessageMax}
	}
	if c.Heads.Shadow {
		out.Shadow = &shadow.Options{Config: c.Heads, Pane: pane, Wait: int64(c.Join.Wait), Heads: rt.Heads}
	}
	return out
}

// inputsOf is how many topics a shard reads.
func inputsOf(c *config.Config) int {
	if c.Topics.Labels == "" {
		return 1
	}
	return 2
}

// rulesOf are those of the rows of a shard.
func rulesOf(rt *Engine) *validate.Config {
	c := &rt.Config
	return &validate.Config{Classes: declaredClasses(c), Ordered: rt.classes,
		Limits:   validate.Limits{Max: c.Versions.Max, PerMinute: c.Versions.NewPerMinute},
		MaxAhead: int64(c.EventTime.MaxAhead), NeedID: inputsOf(c) == 2,
		Suspect: rt.troubles.Softmax}
}

// declaredClasses returns the configured numbers of classes by model.
func declaredClasses(c *config.Config) map[string]int {
	classes := map[string]int{}
	for _, m := range c.Models {
		if m.Classes > 0 {
			classes[m.Name] = m.Classes
		}
	}
	return classes
}

// watermark returns the watermark of a shard. Unkeyed topics that are no longer configured do not hold it back.
func (rt *Engine) watermark(inputs int) *pipeline.Watermark {
	w := pipeline.NewWatermark(inputs, int64(rt.Config.EventTime.AllowedLateness))
	w.Tolerance, w.After = int64(rt.Config.EventTime.MaxAhead), int64(rt.Config.SliceTurns())-1
	plan := scale.Plan{Split: rt.Config.Splits()} // of a replay
	if rt.book != nil {
		plan, _ = rt.book.Now()
	}
	split, direct := plan.Sources(&rt.Config)
	for _, s := range split {
		w.Only(s.Input, s.Topic)
	}
	for in := range direct {
		w.Leave(in)
	}
	return w
}

// BackupPlace returns where a configuration keeps state and history, in absolute paths: they are printed for use in
// other directories.
func BackupPlace(c config.Config) backup.Place {
	for _, path := range []*string{&c.Checkpoints.Dir, &c.Join.Dir, &c.History.Path} {
		if to, err := filepath.Abs(*path); err == nil && *path != "" {
			*path = to
		}
	}
	rt := &Engine{Config: c}
	return backup.Place{Group: c.Group, State: c.Checkpoints.Dir, Skip: rt.workDir(), History: rt.HistoryFile()}
}

// workDir is the directory of files that only this process and its next start on this machine need.
func (rt *Engine) workDir() string {
	if dir := rt.Config.Join.Dir; dir != "" {
		return dir
	}
	return filepath.Join(rt.Config.Checkpoints.Dir, "work")
}

func (rt *Engine) joinOptions(shard int) *join.Options {
	c := &rt.Config
	out := &join.Options{Config: c.Join, Slices: c.Slices.Columns, Name: fmt.Sprintf("%s-shard-%05d", c.Group, shard),
		FeatureBytes: c.Archive.FeatureBytes()}
	out.Dir = rt.workDir()
	return out
}

// forgetAfter returns event_time.forget_after or, if that is longer, the time until the last label of a row can come;
// 0 = never.
func forgetAfter(c *config.Config) int64 {
	if c.EventTime.ForgetAfter == 0 {
		return 0
	}
	return int64(max(c.EventTime.ForgetAfter, c.Join.Wait+c.EventTime.AllowedLateness+c.EventTime.Pane))
}

// NewModelTask builds the model task of a panes partition, with empty state.
func (rt *Engine) NewModelTask(partition int, counts *pipeline.Counts) *model.Task {
	c := &rt.Config
	mc := model.Config{Pane: int64(c.EventTime.Pane), Turns: c.SliceTurns(),
		Acc: c.Stats.Accumulators(c.Sample, c.Kafka.MessageMax), Bins: c.Stats.Bins,
		ExtraBins: c.Stats.ExtraBins, CDFNu: c.Stats.CDFNu, Resamples: c.Stats.Resamples, SampleRows: c.Sample.Rows,
		SliceRows:  c.Sample.SliceRows,
		FinalAfter: int64(c.Join.Wait + c.EventTime.AllowedLateness), ForgetAfter: forgetAfter(c),
		SilentAfter: int64(c.EventTime.SilentAfter),
		Apart:       int64((c.EventTime.MaxAhead + c.EventTime.Pane - 1) / c.EventTime.Pane)}
	mc.Windows, mc.Rules = c.Windows, slices.Clone(c.Rules)
	for i := range mc.Rules {
		mc.Rules[i].Age = cmp.Or(mc.Rules[i].Age, c.Join.Wait)
	}
	mc.Slices = model.SliceSpec{Config: c.Slices}
	mc.Slices.Columns = append([]string{}, c.Slices.Columns...) // not nil, which would mean any column
	mc.Matured = int64(c.Alarm.Matured)
	if mc.Hold = c.Alarm.Hold; c.Alarm.Enabled {
		mc.Alarm = &c.Alarm
	}
	if c.Unlabelled.Enabled {
		mc.Unlabelled = &c.Unlabelled
	}
	mc.Refit, mc.MaxBytes, mc.Build = c.Refit, refit.MaxCalibratorBytes(c.Kafka.MessageMax), buildinfo.Name()
	mc.Trigger, mc.Heads = c.Trigger, c.Heads
	mc.Fits, mc.Unseen = rt.fits, rt.Unseen
	mc.Classes, mc.MaxVersions = declaredClasses(c), c.Versions.Max
	return model.NewTask(mc, partition, counts, rt.Log)
}

// classesOf returns which rows shards count by predicted class.
func classesOf(c *config.Config) string {
	if !c.Unlabelled.Enabled {
		return stats.ClassesNone
	}
	return c.Unlabelled.Classes
}

// teeSink writes to Kafka first, then shows: what the page shows is durable.
type teeSink struct {
	pipeline.Sink
	rt *Engine
}

// Write implements pipeline.Sink.
func (s teeSink) Write(ctx context.Context, ms []pipeline.Message) error {
	err := s.Sink.Write(ctx, ms)
	var refused *pipeline.RefusedError
	if err == nil || errors.As(err, &refused) { // what is refused for good is shown here only
		s.rt.observe(ms)
	}
	return err
}

func (rt *running) add(name string, t reporter) {
	rt.mu.Lock()
	rt.tasks[name] = t
	rt.mu.Unlock()
}

// reads notes the source that a task reads from now on.
func (rt *running) reads(name string, s *kafkaio.Source) {
	rt.mu.Lock()
	rt.sources[name] = s
	rt.mu.Unlock()
}

func (rt *running) remove(name string) {
	rt.mu.Lock()
	delete(rt.tasks, name)
	delete(rt.sources, name)
	rt.mu.Unlock()
}

// Hostname names this machine in records; "unknown" where the system has no name for it.
func Hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return h
}

func taskName(stage string, partition int) string { return fmt.Sprintf("%s-%d", stage, partition) }
