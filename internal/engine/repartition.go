package engine

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// runSplitters runs a consumer group for each topic that is split by id, because their numbers of partitions differ.
// While shards are being sealed no topic is split: nobody would read the result.
func (r *KafkaRun) runSplitters(ctx context.Context, which Stages) error {
	return r.book.ForEachNumber(ctx, func(ctx context.Context, plan scale.Plan) error {
		for (which.Repartition || plan.Split) && ctx.Err() == nil {
			r.book.Until(ctx, func(now scale.Plan) bool { return now.To == 0 })
			while, stop := r.book.While(ctx, func(now scale.Plan) bool { return now.To == 0 })
			err := r.split(while, plan)
			if over := while.Err() != nil; !over { // as where a topic that was made a moment ago is not known yet
				r.Log.Warn("split topics by id, trying again", faultlog.Err(err))
				scale.Sleep(ctx)
			}
			stop()
		}
		return nil
	})
}

// split runs the groups of the topics that a plan splits, until ctx is done.
func (r *KafkaRun) split(ctx context.Context, plan scale.Plan) error {
	in := plan.Inputs(&r.Config)
	sources, _ := plan.Sources(&r.Config)
	if len(sources) == 0 {
		<-ctx.Done()
		return nil
	}
	// Only what is written to: there may be no labels topic.
	to := map[pipeline.Stream]string{pipeline.StreamDeadLetter: r.Config.Topics.DeadLetter}
	streams := [...]pipeline.Stream{pipeline.Logits: pipeline.StreamLogits, pipeline.Labels: pipeline.StreamLabels}
	for _, s := range sources {
		to[streams[s.Input]] = in[s.Input]
	}
	if r.Config.Topics.Decisions != "" {
		to[pipeline.StreamHistory] = r.Config.Topics.Decisions
	}
	written, err := kafkaio.NewSink(ctx, r.Client, to, r.Config.Kafka.MessageMax, r.Log)
	if err != nil {
		return err
	}
	sink := decisionlog.Recorder{Sink: written}
	made, err := incarnations(ctx, r, sources)
	if err != nil {
		return err
	}
	while, end := context.WithCancelCause(ctx)
	defer end(nil)
	g, ctx := errgroup.WithContext(while)
	g.Go(func() error {
		end(made.watch(ctx, r)) // there may be no relay that asks
		return nil
	})
	for _, s := range sources {
		u := relayed{plan: plan, Source: s, task: splitterOf(s), group: relayGroup(r, s, plan, made)}
		if s.As != nil {
			if made.absent[s.Topic] {
				r.due.leave(u.task)
				continue
			}
			u.ids, u.name = made, made.name(s.Topic)
		}
		// Partitions that are added need nothing but to be read.
		group := kafkaio.Group{ID: u.group, Brokers: r.Config.Kafka.Brokers, Dialer: r.Dialer,
			Topics: []string{s.Topic}, Watch: true, Log: r.Log, Silent: r.heardNothing(u.task),
			Client: r.Client, Session: r.Config.Kafka.Session, Members: filepath.Join(r.workDir(), "members")}
		r.due.await(u.task)
		r.due.follow(&group, u.task, math.MaxInt)
		g.Go(func() error {
			defer r.due.leave(u.task)
			defer group.Silent(time.Time{}, nil)
			return group.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
				task := attempts.ID{Task: u.task, Partition: p}
				return r.attempts.Run(ctx, task, func(ctx context.Context, guard *attempts.Guard) error {
					u := u
					u.partition, u.guard = p, guard
					err := r.repartition(ctx, u, sink, commit)
					if errors.Is(err, errMadeAgain) {
						end(err) // first: no task has failed
					}
					return err
				})
			})
		})
	}
	err = g.Wait()
	if cause := context.Cause(while); errors.Is(cause, errMadeAgain) {
		return cause
	}
	return err
}

// relayed is a partition of a topic that is split, with its group.
type relayed struct {
	scale.Source
	plan      scale.Plan
	task      string
	group     string
	partition int
	guard     pipeline.Guard

	// An input topic has a group for each of its ids: when it is deleted and made again, offsets of the old one must
	// not apply. So a relay keeps the topic's id from the start of its group to the end.
	ids  *inputIDs
	name string // see sourceName
}

// confirm returns an error if the topic, or one that the state depends on, was made again. Shortly after an answer it
// does not ask again.
func (u *relayed) confirm(ctx context.Context, r *KafkaRun) error {
	err := r.confirmed.lately(ctx)
	if err == nil && u.ids != nil {
		err = u.ids.confirmed.lately(ctx)
	}
	return err
}

// doubt makes confirm ask again.
func (u *relayed) doubt(r *KafkaRun) {
	r.confirmed.doubt()
	if u.ids != nil {
		u.ids.confirmed.doubt()
	}
}

// ended returns the error with which a relay ends. Records missing from a log that was made again do not count as
// lost.
func (u *relayed) ended(ctx context.Context, r *KafkaRun, err error) error {
	if errors.Is(err, kafka.OffsetOutOfRange) {
		u.doubt(r)
		err = cmp.Or(u.confirm(ctx, r), err)
	}
	return lasting(gone(u.task, u.partition, err))
}

// inputIDs has the topic ids after which the groups of inputs are named.
type inputIDs struct {
	of        map[string]kafkaio.TopicID
	absent    map[string]bool // not read until they are there; unusableTopics names them
	confirmed confirmer
}

// errMadeAgain ends the groups of all inputs; the next ones get new names.
var errMadeAgain = errors.New("was deleted and made again: it is read from its start, and what nobody had read of " +
	"the one before is gone")

// incarnations asks the brokers for the topic ids.
func incarnations(ctx context.Context, r *KafkaRun, sources []scale.Source) (*inputIDs, error) {
	made := &inputIDs{of: map[string]kafkaio.TopicID{}, absent: map[string]bool{}}
	for _, s := range sources {
		if s.As == nil {
			continue
		}
		ids, err := kafkaio.TopicIDs(ctx, r.Client, s.Topic)
		switch {
		case errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.TopicAuthorizationFailed):
			made.of[s.Topic], made.absent[s.Topic] = kafkaio.TopicID{}, true
		case err != nil:
			return nil, err
		default:
			made.of[s.Topic] = ids[0]
		}
	}
	made.confirmed.ask = func(ctx context.Context) error { return made.unchanged(ctx, r) }
	return made, nil
}

// watch asks repeatedly until ctx is done, or until a topic was made again.
func (m *inputIDs) watch(ctx context.Context, r *KafkaRun) error {
	tick := time.NewTicker(r.WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := m.confirmed.now(ctx); err != nil {
			return err
		}
	}
}

func (m *inputIDs) name(topic string) string { return nameWith(topic, m.of[topic]) }

// unchanged returns an error if a topic was made again. If the brokers cannot tell, or the topic does not exist, it
// assumes no change this time.
func (m *inputIDs) unchanged(ctx context.Context, r *KafkaRun) error {
	ctx, cancel := context.WithTimeout(ctx, idPatience)
	defer cancel()
	topics := slices.Sorted(maps.Keys(m.of))
	ids, err := kafkaio.KnownTopicIDs(ctx, r.Client, topics...)
	if err != nil {
		r.Log.Debug("ids of topics", "err", err)
	}
	for i, topic := range topics {
		switch was := m.of[topic]; {
		case was == ids[i] || was == kafkaio.TopicID{} && !m.absent[topic]:
		case ids[i] == kafkaio.TopicID{}:
			m.confirmed.doubt()
		default:
			return fmt.Errorf("topic %s %w", topic, errMadeAgain)
		}
	}
	return nil
}

// translate configures the repartition stage to turn an input's records into Arrow messages, if they are in another
// format.
func translate(rt *Engine, as *inputs.Config, cfg *repartition.Config) error {
	if as == nil {
		return nil
	}
	o := inputs.Options{Slices: rt.Config.Slices.Columns, MaxBytes: rt.Config.Kafka.MessageMax}
	if as.Registered() {
		registry, err := rt.registry()
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
			rt.troubles.Waits(r, err)
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

// repartition splits one partition until ctx is done.
func (r *KafkaRun) repartition(ctx context.Context, u relayed, sink pipeline.Sink, commit kafkaio.CommitFunc) error {
	p := u.partition
	next, err := kafkaio.Committed(ctx, r.Client, u.group, u.Topic, p)
	if err != nil {
		return err
	}
	u.doubt(r) // the topic may be another one than that of the last attempt
	source := u.name
	if source == "" {
		if source, err = sourceName(ctx, r.Client, u.Topic); err != nil {
			return err
		}
	}
	fence := pipeline.FenceOf(u.plan.Fences, u.Input, source, p)
	if next < 0 && fence != nil {
		next = fence.From
	}
	of, err := kafkaio.Partitions(ctx, r.Client, u.Topic)
	if err != nil {
		return err
	}
	src := kafkaio.NewSource(kafkaio.Spec{
		Client:      r.Client,
		Topics:      map[pipeline.Input]string{u.Input: u.Topic},
		Partition:   p,
		Next:        map[pipeline.Input]int64{u.Input: next},
		MaxBytes:    r.Config.Kafka.FetchMax,
		IdleTimeout: r.Config.EventTime.IdleTimeout,
		MaxAhead:    r.Config.EventTime.MaxAhead,
		Commit:      fencedCommit(commit),
		Gate:        &r.gate,
		ReportPause: true,
		Doubt:       func() { u.doubt(r) },
		Log:         r.Log,
	})
	defer src.Close()
	counts := pipeline.NewCounts()
	split := repartition.Config{Input: u.Input, Topic: source, Partition: int32(p), Of: int32(max(of, p+1)),
		Targets: u.plan.Of, Keyed: !u.plan.Split, Fence: fence,
		Decode: arrowio.Options{Slices: r.Config.Slices.Columns, MaxMessageBytes: r.Config.Kafka.MessageMax}}
	if err := translate(r.Engine, u.As, &split); err != nil {
		return err
	}
	hashed, err := idKey(r.Config.Privacy.IDKeyFile)
	if err != nil {
		return err
	}
	convert := repartition.New(split, next, newOut(r.Engine, counts, hashed), counts)
	status := &pipeline.RelayStatus{Task: u.task, Partition: p}
	name := taskName(u.task, p)
	r.add(name, status)
	r.reads(name, src)
	defer r.remove(name)
	relay := pipeline.Relay{Name: name, Source: src, Convert: convert, Sink: sink, Input: u.Input, Next: next,
		Interval: r.Config.Checkpoints.Interval, Log: r.Log, Counts: counts, Status: status,
		Guard: u.guard, Trace: splitterLane(r, u),
		Confirm: func(ctx context.Context) error { return u.confirm(ctx, r) }}
	return u.ended(ctx, r, relay.Run(ctx))
}

// sourceName returns the name under which shards know an unkeyed topic: its name and id.
func sourceName(ctx context.Context, client *kafka.Client, topic string) (string, error) {
	ids, err := kafkaio.TopicIDs(ctx, client, topic)
	if err != nil {
		return topic, err
	}
	return nameWith(topic, ids[0]), nil
}

func nameWith(topic string, id kafkaio.TopicID) string {
	if id == (kafkaio.TopicID{}) {
		return topic
	}
	return topic + "@" + hex.EncodeToString(id[:])
}

// relays are the topics that are split, for package reset.
func relays(ctx context.Context, r *KafkaRun) ([]reset.Relay, error) {
	plan, _ := r.book.Now()
	sources, _ := plan.Sources(&r.Config)
	made, err := incarnations(ctx, r, sources)
	if err != nil {
		return nil, err
	}
	var out []reset.Relay
	for _, s := range sources {
		if made.absent[s.Topic] {
			continue
		}
		n, err := kafkaio.Partitions(ctx, r.Client, s.Topic)
		if err != nil {
			return nil, err
		}
		out = append(out, reset.Relay{Name: splitterOf(s), Input: s.Input, Topic: s.Topic,
			Group: relayGroup(r, s, plan, made), Partitions: n})
	}
	return out, nil
}

// relayGroup names the consumer group of a topic that is split.
func relayGroup(r *KafkaRun, s scale.Source, plan scale.Plan, made *inputIDs) string {
	if s.As != nil {
		return r.Config.Group + "-input-" + made.name(s.Topic) + plan.Suffix()
	}
	return r.Config.Group + "-" + splitterOf(s) + plan.Suffix()
}

// fencedCommit wraps commit: it returns ErrFenced if the group has gone on without this process.
func fencedCommit(commit kafkaio.CommitFunc) kafkaio.CommitFunc {
	return func(ctx context.Context, next map[string]int64) error {
		err := commit(ctx, next)
		for _, gone := range []kafka.Error{kafka.UnknownMemberId, kafka.IllegalGeneration, kafka.FencedInstanceID} {
			if errors.Is(err, gone) {
				return fmt.Errorf("%w: %w", pipeline.ErrFenced, err)
			}
		}
		return err
	}
}
