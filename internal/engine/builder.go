package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/engine/trouble"
	"github.com/plumbline/plumbline/internal/faulty"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/apply"
	archiving "github.com/plumbline/plumbline/operators/archive"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/pair"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/inputs/schemas"
	"github.com/plumbline/plumbline/sinks/archive"
)

// builder builds shards, model tasks and what the stage that splits topics is made of, with empty state.
type builder struct {
	config    *config.Config
	log       *slog.Logger
	view      *view
	fits      refit.Pool
	Archive   *archive.Archive // nil = none is configured
	registry  func() (*schemas.Client, error)
	troubles  *trouble.Watch // is told what the tasks notice
	plans     *scale.Book    // of the shards that are built
	replaying bool           // files or topics are read again
	Unseen    bool           // nobody reads snapshots: they are not made
}

func newBuilder(cfg *config.Config, v *view, troubles *trouble.Watch, log *slog.Logger) builder {
	return builder{config: cfg, log: log, view: v, fits: refit.NewPool(cfg.Refit.Workers),
		Archive: openArchive(cfg, log), troubles: troubles,
		registry: sync.OnceValues(func() (*schemas.Client, error) { return schemas.New(cfg.SchemaRegistry) }),
		plans:    scale.Fixed(scale.Plan{Split: cfg.Splits()})}
}

// NewShard builds shard id of so many, with empty state.
func (b *builder) NewShard(id, of, panesPartitions int) (*pipeline.Shard, error) {
	c := b.config
	archived, err := idKey(c.Privacy.IDKeyFile)
	if err != nil {
		return nil, err
	}
	pane := int64(c.EventTime.Pane)
	inputs := inputsOf(c)
	counts := pipeline.NewCounts()
	clock := b.watermark(inputs)
	host := pipeline.Host{Out: b.newOut(counts, archived), Outbox: pipeline.NewOutbox(id, of, pane, panesPartitions),
		Counts: counts, Clocks: clock.Clocks, Log: b.log}
	stages := b.stages(id)
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
func (b *builder) newOut(counts *pipeline.Counts, hashed func(arrowio.ID) arrowio.ID) *pipeline.Out {
	c := &b.config.Kafka
	out := pipeline.NewOut(counts).Quote(min(c.DeadLetter, c.MessageMax/2), b.log)
	out.Tell(b.troubles.Refused)
	if hashed != nil {
		out.Hide(func(key []byte) []byte {
			id := hashed(arrowio.HashID(string(key)))
			return hex.AppendEncode(nil, id[:])
		})
	}
	return out
}

// stages returns the configuration of a shard's operators.
func (b *builder) stages(shard int) operators.Config {
	c := b.config
	pane := int64(c.EventTime.Pane)
	out := operators.Config{
		Validate: b.rules(),
		Pair:     &pair.Options{Config: c.Pair, Slices: c.Slices.Columns, Shard: shard},
		Join:     b.joinOptions(shard),
		Archive:  b.archiveOptions(shard),
		Stats: &stats.Options{
			Acc:     c.Stats.Accumulators(c.Sample, c.Kafka.MessageMax),
			Pane:    pane,
			Turns:   c.SliceTurns(),
			MaxKeys: c.Slices.MaxKeys,
			Classes: classesOf(c),
		},
	}
	if c.Calibrated.Enabled {
		out.Apply = &apply.Options{Config: c.Calibrated, Published: b.view.published,
			MaxBytes: c.Kafka.MessageMax}
	}
	if c.Heads.Shadow {
		out.Shadow = &shadow.Options{Config: c.Heads, Pane: pane, Wait: int64(c.Join.Wait), Heads: b.view.Heads}
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

// rules are those of the rows of a shard.
func (b *builder) rules() *validate.Config {
	c := b.config
	return &validate.Config{Classes: declaredClasses(c), Ordered: b.view.classes,
		Limits:   validate.Limits{Max: c.Versions.Max, PerMinute: c.Versions.NewPerMinute},
		MaxAhead: int64(c.EventTime.MaxAhead), NeedID: inputsOf(c) == 2,
		Suspect: b.troubles.Softmax}
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
func (b *builder) watermark(inputs int) *pipeline.Watermark {
	w := pipeline.NewWatermark(inputs, int64(b.config.EventTime.AllowedLateness))
	w.Tolerance, w.After = int64(b.config.EventTime.MaxAhead), int64(b.config.SliceTurns())-1
	plan, _ := b.plans.Now()
	split, direct := plan.Sources(b.config)
	for _, s := range split {
		w.Only(s.Input, s.Topic)
	}
	for in := range direct {
		w.Leave(in)
	}
	return w
}

// workDir is the directory of files that only this process and its next start on this machine need.
func workDir(c *config.Config) string {
	if dir := c.Join.Dir; dir != "" {
		return dir
	}
	return filepath.Join(c.Checkpoints.Dir, "work")
}

func (b *builder) joinOptions(shard int) *join.Options {
	c := b.config
	out := &join.Options{Config: c.Join, Slices: c.Slices.Columns, Name: fmt.Sprintf("%s-shard-%05d", c.Group, shard),
		FeatureBytes: c.Archive.FeatureBytes()}
	out.Dir = workDir(b.config)
	return out
}

// openArchive opens the archive of this process; nil if none is configured.
func openArchive(cfg *config.Config, log *slog.Logger) *archive.Archive {
	c := &cfg.Archive
	if c.Directory == "" {
		return nil
	}
	return archive.New(archive.Config{Dir: c.Directory, MaxBytes: c.MaxBytes, MaxAge: int64(c.MaxAge), Log: log})
}

// archiveOptions returns the options of a shard's archive operator; nil if no archive is configured. Files of a replay
// have names of their own, because they are cut at other rows than the live run's.
func (b *builder) archiveOptions(shard int) *archiving.Options {
	if b.Archive == nil {
		return nil
	}
	c := &b.config.Archive
	group := b.config.Group
	if b.replaying {
		group += "-replay"
	}
	return &archiving.Options{Config: *c, Group: group, Shard: shard, Slices: b.config.Slices.Columns,
		Dir: workDir(b.config), Name: fmt.Sprintf("%s-archive-%05d", group, shard), Publish: b.Archive.Publish,
		AtOnce: b.replaying}
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
func (b *builder) NewModelTask(partition int, counts *pipeline.Counts) *model.Task {
	c := b.config
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
	mc.Fits, mc.Unseen = b.fits, b.Unseen
	mc.Classes, mc.MaxVersions = declaredClasses(c), c.Versions.Max
	return model.NewTask(mc, partition, counts, b.log)
}

// classesOf returns which rows shards count by predicted class.
func classesOf(c *config.Config) string {
	if !c.Unlabelled.Enabled {
		return stats.ClassesNone
	}
	return c.Unlabelled.Classes
}

// Readable returns a pipeline.FormatError where this build cannot read a checkpoint of a stage, shards or models.
func (b *builder) Readable(stage string, data []byte) error {
	if stage == "models" {
		return pipeline.CheckFormat(data, b.NewModelTask(0, pipeline.NewCounts()).Sections())
	}
	s, err := b.NewShard(0, 1, 1)
	if err != nil {
		return err
	}
	err = pipeline.CheckFormat(data, s.Sections())
	return errors.Join(err, s.Close())
}

// translate configures the repartition stage to turn an input's records into Arrow messages, if they are in another
// format.
func (b *builder) translate(as *inputs.Config, cfg *repartition.Config) error {
	if as == nil {
		return nil
	}
	o := inputs.Options{Slices: b.config.Slices.Columns, MaxBytes: b.config.Kafka.MessageMax}
	if as.Registered() {
		registry, err := b.registry()
		if err != nil {
			return err
		}
		o.Schemas = registry
	}
	d, err := inputs.New(*as, o)
	if err != nil {
		return fmt.Errorf("input %s: %w", as.Topic, err)
	}
	one := &inputs.Record{} // at a time
	of := func(r *pipeline.Record) *inputs.Record {
		*one = inputs.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Time}
		return one
	}
	cfg.Translate = func(r *pipeline.Record) ([][]byte, error) { return d.Decode(of(r)) }
	cfg.Together = together{d, of}
	cfg.Ready = func(ctx context.Context, r *pipeline.Record) error {
		for {
			err := d.Ready(ctx, of(r))
			if err == nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			b.troubles.Waits(r, err)
			scale.Sleep(ctx)
		}
	}
	return nil
}

// together translates records of few rows into one message.
type together struct {
	d  *inputs.Decoder
	of func(r *pipeline.Record) *inputs.Record
}

func (t together) Start(r *pipeline.Record) (int, bool) { return t.d.Start(t.of(r)) }
func (t together) Add(r *pipeline.Record) (int, bool)   { return t.d.Add(t.of(r)) }
func (t together) Message() ([]byte, []int, error)      { return t.d.Together() }
