package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// Replay is one model task behind any number of shards, in one process and without a broker in between.
type Replay struct {
	*Engine
	mu     sync.Mutex // the model task's
	Model  *model.Task
	offset int64
	Shards []*pipeline.Shard
	skips  skips
	made   []string // folders that are not there before it
}

// mostDecisions is how many alerts and calibrators of a model version a replay keeps: all of any stream that ends.
const mostDecisions = 1 << 20

// NewReplay returns a replay that has read nothing.
func NewReplay(cfg config.Config, log *slog.Logger) *Replay {
	r := &Replay{Engine: New(cfg, log)}
	r.History = history.New(history.Config{AlertsPerModel: mostDecisions, CalibratorsPerModel: mostDecisions})
	r.replaying = true
	for _, dir := range []string{workDir(&r.Config), cfg.Checkpoints.Dir} {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			r.made = append(r.made, dir)
		}
	}
	return r
}

// Finish waits for the running fits and completes the archive's files: the input has ended.
func (r *Replay) Finish(ctx context.Context) error {
	if err := r.Settle(ctx); err != nil {
		return err
	}
	return r.endArchives(ctx)
}

// endArchives completes the files of all shards: the input has ended.
func (r *Replay) endArchives(ctx context.Context) error {
	for i, s := range r.Shards {
		if err := s.End(ctx); err != nil {
			return fmt.Errorf("%s: %w", taskName("shard", i), err)
		}
	}
	return nil
}

// Open makes so many shards, and one model task for all models.
func (r *Replay) Open(shards int) error {
	r.Model = r.NewModelTask(0, pipeline.NewCounts())
	r.add("model-0", r.Model)
	for i := range shards {
		s, err := r.NewShard(i, shards, 1)
		if err != nil {
			return err
		}
		r.Shards = append(r.Shards, s)
		r.add(taskName("shard", i), s)
	}
	return nil
}

// Close removes the shards' files on disk, and the folders made for them.
func (r *Replay) Close() {
	for i, s := range r.Shards {
		if err := s.Close(); err != nil {
			r.Log.Warn("close", "task", taskName("shard", i), "err", err)
		}
	}
	for _, dir := range r.made {
		_ = os.Remove(dir) // a folder that has something in it stays
	}
}

// take gives a shard a record, and the model task the resulting panes.
func (r *Replay) take(ctx context.Context, shard int, rec pipeline.Record) error {
	s := r.Shards[shard]
	why, ok := r.skips.poison(&rec)
	if !ok {
		why, ok = r.skips.skipsPart(&rec, len(r.Shards))
	}
	if ok {
		s.Skip(rec, why)
	} else if err := s.Take(ctx, rec); err != nil {
		return err
	}
	panes := s.Decided().After
	if len(panes) > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range panes {
			err := r.Model.Take(ctx, pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: r.offset,
				Value: m.Value})
			if err != nil {
				return err
			}
			r.offset++
		}
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	s.Written()
	return nil
}

// Settle waits for the fits that are due.
func (r *Replay) Settle(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settle(ctx)
}

// settle passes outputs on as they come. An input without messages, such as that of labels that come inline, holds all
// panes back until the end, and the snapshots of a slow stream are a thousand times as large as its rows.
func (r *Replay) settle(ctx context.Context) error {
	for {
		if err := r.Model.Resume(); err != nil {
			return err
		}
		r.observe(r.Model.Outputs())
		news := r.Model.Wake()
		if news == nil {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain closes the panes that are open at the end of the input, as idle inputs do in a live run.
func (r *Replay) drain(ctx context.Context, shard, inputs int) error {
	for in := range inputs {
		if err := r.take(ctx, shard, pipeline.Record{Input: pipeline.Input(in), Idle: true}); err != nil {
			return err
		}
	}
	return nil
}

// Files replays a feed over so many shards, to its end. done is told how many more rows were read.
func (r *Replay) Files(ctx context.Context, f *feed.Feed, shards int, done func(rows int64)) error {
	if err := r.Open(shards); err != nil {
		return err
	}
	if err := r.Feed(ctx, f, done); err != nil {
		return err
	}
	for i := range r.Shards {
		if err := r.drain(ctx, i, inputsOf(&r.Config)); err != nil {
			return err
		}
	}
	return nil
}

// Feed runs the rows of f through the tasks; done gets the number of rows so far.
func (r *Replay) Feed(ctx context.Context, f *feed.Feed, done func(rows int64)) error {
	next := map[string]int64{}
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			return r.Settle(ctx)
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		rec := pipeline.Record{Input: pipeline.Input(m.Stream), Topic: m.Stream.String(), Partition: m.Partition,
			Time: m.Time, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			rec.Headers = append(rec.Headers, pipeline.Header{Key: h.Key, Value: h.Value})
		}
		lane := fmt.Sprintf("%d/%d", m.Stream, m.Partition)
		rec.Offset = next[lane]
		next[lane]++
		if int(m.Stream) < inputsOf(&r.Config) {
			if err := r.take(ctx, int(m.Partition), rec); err != nil {
				return err
			}
		}
		if m.Stream == feed.Logits && done != nil {
			done(int64(m.Rows))
		}
	}
}

// TopicRange is the range of the logits and labels topics that a replay reads.
type TopicRange struct {
	From, To position
	Begin    func(messages int64) // told how many there are before they are read
	Done     func(messages int64) // told how many more were read
}

// Topics replays a range of the topics.
func (r *Replay) Topics(ctx context.Context, of TopicRange) error {
	client, _, err := kafkaclient.New(r.Config.Kafka)
	if err != nil {
		return err
	}
	plan, err := r.planned(ctx, client)
	if err != nil {
		return kafkaclient.Explain(ctx, r.Config.Kafka, err)
	}
	r.plans = scale.Fixed(plan)
	if err := r.Open(plan.Of); err != nil {
		return err
	}
	spec := kafkaio.TailSpec{Client: client, MaxBytes: r.Config.Kafka.FetchMax, Log: r.Log}
	if r.skips, err = readSkips(ctx, r.Config, spec); err != nil {
		return err
	}
	if r.Config.Heads.Shadow { // those that were there live, from the event times that they say
		// A record that cannot be used is left out, as it was live.
		if err := kafkaio.ReadTopic(ctx, spec, r.Config.Topics.Heads,
			func(rec *pipeline.Record) { _ = r.Tuning.ReadRecord(rec) }); err != nil {
			return kafkaclient.Explain(ctx, r.Config.Kafka, fmt.Errorf("topics.heads: %w", err))
		}
	}
	if plan.Split {
		return newSplitReplay(r, client, plan).run(ctx, of)
	}
	specs, total, err := r.ranges(ctx, client, plan.Of, of)
	if err != nil {
		return err
	}
	of.Begin(total)
	g, ctx := errgroup.WithContext(ctx)
	for p := range plan.Of {
		g.Go(func() error { return r.partition(ctx, specs[p], of.Done) })
	}
	return g.Wait()
}

// planned returns how many shards the deployment has. After `plumbline scale` they read topics of plumbline's own.
func (r *Replay) planned(ctx context.Context, client *kafka.Client) (plan scale.Plan, err error) {
	plan.Of, err = scale.Topics{Config: &r.Config, Client: client}.Found(ctx)
	if plan.Split = plan.Of > 0; err != nil || plan.Split {
		return plan, err
	}
	plan.Of, err = kafkaclient.InputPartitions(ctx, client, r.Config.Topics)
	return plan, err
}

// ranges returns the offsets to read in n partitions, and the number of messages.
func (r *Replay) ranges(ctx context.Context, client *kafka.Client, n int, of TopicRange) (specs []kafkaio.Spec,
	total int64, err error) {
	plan := scale.Plan{Of: n, Split: r.Config.Splits()} // what the shards of a new deployment read
	topics := plan.Inputs(&r.Config)
	specs = make([]kafkaio.Spec, n)
	for p := range n {
		specs[p] = kafkaio.Spec{Client: client, Topics: topics, Partition: p, Next: map[pipeline.Input]int64{},
			Until: map[pipeline.Input]int64{}, MaxBytes: r.Config.Kafka.FetchMax, Log: r.Log}
		for in, topic := range topics {
			lo, hi, err := of.offsets(ctx, client, topic, p)
			if err != nil {
				return nil, 0, err
			}
			specs[p].Next[in], specs[p].Until[in] = lo, hi
			total += max(hi-lo, 0)
		}
	}
	return specs, total, nil
}

func (r *Replay) partition(ctx context.Context, spec kafkaio.Spec, done func(messages int64)) error {
	src := kafkaio.NewSource(spec)
	defer src.Close()
	for {
		rec, err := src.Next(ctx)
		if errors.Is(err, io.EOF) {
			return r.drain(ctx, spec.Partition, inputsOf(&r.Config))
		}
		if err != nil {
			return err
		}
		rec.Ahead = r.skips.ahead(&rec)
		if err := r.take(ctx, spec.Partition, rec); err != nil {
			return err
		}
		done(1)
	}
}

// position is a place in a topic.
type position struct {
	kind   string // earliest, latest, offset or time
	offset int64
	time   time.Time
}

// ParsePosition reads a position as people write it.
func ParsePosition(s string) (position, error) {
	if s == "earliest" || s == "latest" {
		return position{kind: s}, nil
	}
	if o, err := strconv.ParseInt(s, 10, 64); err == nil {
		return position{kind: "offset", offset: o}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return position{}, errors.New("must be earliest, latest, an offset or a time such as 2026-01-31T12:00:00Z")
	}
	return position{kind: "time", time: t}, nil
}

// offsets returns the offsets of one partition between the positions.
func (of TopicRange) offsets(ctx context.Context, c *kafka.Client, topic string, p int) (lo, hi int64, err error) {
	first, end, err := kafkaio.Bounds(ctx, c, topic, p)
	if err != nil {
		return 0, 0, err
	}
	at := func(pos position) (int64, error) {
		switch pos.kind {
		case "earliest":
			return first, nil
		case "latest":
			return end, nil
		case "offset":
			return pos.offset, nil
		}
		o, ok, err := offsetAt(ctx, c, topic, p, pos.time)
		if !ok {
			o = end
		}
		return o, err
	}
	if lo, err = at(of.From); err == nil {
		hi, err = at(of.To)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("offsets of %s, partition %d: %w", topic, p, err)
	}
	return max(lo, first), min(hi, end), nil
}

// offsetAt returns the offset of the first record at or after t; ok is false if there is none.
func offsetAt(ctx context.Context, c *kafka.Client, topic string, p int, t time.Time) (offset int64, ok bool,
	err error) {
	res, err := c.ListOffsets(ctx,
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.TimeOffsetOf(p, t)}}})
	if err != nil {
		return 0, false, err
	}
	for _, po := range res.Topics[topic] {
		for o := range po.Offsets {
			if po.Error == nil && o >= 0 {
				return o, true, nil
			}
		}
		if po.Error != nil {
			return 0, false, po.Error
		}
	}
	return 0, false, nil
}

// ReplayResult is what `replay --json` prints.
type ReplayResult struct {
	StateHash   string              `json:"state_hash"`
	ByModel     map[string]string   `json:"state_hash_by_model"`
	Rows        int64               `json:"rows"`
	Labelled    int64               `json:"labelled"`
	Seconds     float64             `json:"seconds"`
	RowsPerSec  float64             `json:"rows_per_second"`
	Counts      map[string]any      `json:"counts"`
	Alerts      []record.Alert      `json:"alerts"`
	Calibrators []record.Calibrator `json:"calibrators"`
	Snapshots   []record.Snapshot   `json:"snapshots"`
	// Unequal lists records that the live run skipped and the replay could not skip: its state is therefore different.
	Unequal []string `json:"unequal,omitempty"`

	wait time.Duration // join.wait
}

// LeftOut says which rows and messages are in no statistic, "" where all are in one.
func (res ReplayResult) LeftOut() string {
	var out []string
	if n, _ := res.Counts[pipeline.CountDuplicates].(int64); n > 0 {
		out = append(out, fmt.Sprintf("%d rows with the id of one before", n))
	}
	orphans, _ := res.Counts[pipeline.CountOrphans].(int64)
	alone, _ := res.Counts[pipeline.CountWaitingLabels].(int64)
	if n := orphans + alone; n > 0 {
		out = append(out, fmt.Sprintf("%d labels without a prediction, or later than join.wait, %v", n, res.wait))
	}
	if n, _ := res.Counts[pipeline.CountEvicted].(int64); n > 0 {
		out = append(out, fmt.Sprintf("%d rows pushed out before their label, or prediction, by join.max_rows", n))
	}
	for _, of := range []struct{ count, what string }{
		{pipeline.CountRejected, "rows rejected"}, {pipeline.CountDeadLetters, "messages refused, wholly or in part"},
	} {
		by, _ := res.Counts[of.count].(map[string]int64)
		var sum int64
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(by)) {
			sum += by[reason]
			reasons = append(reasons, fmt.Sprintf("%s %d", reason, by[reason]))
		}
		if sum > 0 {
			out = append(out, fmt.Sprintf("%d %s (%s)", sum, of.what, strings.Join(reasons, ", ")))
		}
	}
	return strings.Join(out, "; ")
}

// AlertLines tells people of the alerts: a line where the state of one changes, or what inhibits it. So the last line
// of an alert tells its last state.
func (res ReplayResult) AlertLines() []string {
	type state struct{ name, inhibited string }
	type key struct{ model, version, slice, rule string }
	told := map[key]state{}
	var out []string
	for i := range res.Alerts {
		a := &res.Alerts[i]
		k, now := key{a.Model, a.Version, a.Slice, a.Rule}, state{a.State, inhibition(a)}
		was, known := told[k]
		if known && was == now {
			continue
		}
		told[k] = now
		more := ""
		switch {
		case now.inhibited != "":
			more = " (inhibited: " + now.inhibited + ")"
		case was.inhibited != "" && was.name == now.name:
			more = " (no longer inhibited)"
		}
		out = append(out, fmt.Sprintf("%s  %s/%s %s  %s is %s%s: %s",
			a.At, a.Model, a.Version, a.Slice, a.Rule, a.State, more, a.Message))
	}
	return out
}

// inhibition says in the words of the page what stands for an alert, "" where nothing does or the alert is over.
func inhibition(a *record.Alert) string {
	by := a.InhibitedBy
	if by == "" || a.State == "resolved" {
		return ""
	}
	if strings.HasPrefix(by, record.NoPredictions) {
		return by
	}
	rest, alert := strings.CutPrefix(by, a.Model+"/"+a.Version+"/")
	if !alert {
		return "answered by " + by // calibrator N
	}
	cut := strings.LastIndexByte(rest, '/')
	slice, rule := rest[:max(cut, 0)], rest[cut+1:]
	switch slice {
	case a.Slice:
		return "follows from " + rule
	case "":
		return "follows from " + rule + " of all rows"
	}
	return "follows from " + rule + " of " + slice
}

// NoRows is an error where there were rows and none was taken.
func (res ReplayResult) NoRows() error {
	if left := res.LeftOut(); res.Rows == 0 && left != "" {
		return fmt.Errorf("replay: no row was taken; left out: %s", left)
	}
	return nil
}

// Result is what the replay came to.
func (r *Replay) Result(took time.Duration) (ReplayResult, error) {
	res := ReplayResult{wait: r.Config.Join.Wait, Seconds: took.Seconds(), Alerts: r.History.Alerts("", "", 0),
		Calibrators: r.History.Calibrators("", "", 0)}
	var err error
	if res.ByModel, err = r.Model.Hash(); err != nil {
		return res, err
	}
	res.StateHash, res.Unequal = CombineHashes(res.ByModel), r.skips.unequal(len(r.Shards))
	for _, s := range r.Shards {
		s.Report(true, true)()
	}
	r.Model.Report(true, true)()
	tasks, _ := r.Statuses()
	res.Counts = countTree(tasks)
	res.Rows, _ = res.Counts[pipeline.CountPredictions].(int64)
	res.Labelled, _ = res.Counts[pipeline.CountLabelled].(int64)
	res.RowsPerSec = float64(res.Rows) / res.Seconds
	for _, info := range r.History.Series() {
		if s, ok := r.History.Latest(info.SnapshotKey); ok {
			res.Snapshots = append(res.Snapshots, s)
		}
	}
	return res, nil
}
