package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	exporter "github.com/prometheus/exporter-toolkit/web"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/accept"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/dirstore"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/sinks/metrics"
	"github.com/plumbline/plumbline/web"
	"github.com/plumbline/plumbline/web/calibrate"
)

// Stages says which stages a process runs.
type Stages struct{ Shards, Models, Repartition bool }

// KafkaRun is a run against brokers.
type KafkaRun struct {
	*Engine
	Client    *kafka.Client
	Dialer    *kafka.Dialer
	store     pipeline.CheckpointStore
	sink      pipeline.Sink
	recalls   recalls
	panes     int        // partitions of panes
	beginning sync.Mutex // of a shard's first state: others' states take memory
	topics    topology
	confirmed confirmer
	turns     chan struct{} // of model tasks that compute
	onTopic   onTopic       // of calibrators
}

// Run serves until ctx is done or until an error that retrying cannot fix. It checks the topics and opens the store,
// then joins the groups; each task restores its state before it reads.
func (rt *Engine) Run(ctx context.Context, which Stages) (err error) {
	r := &KafkaRun{Engine: rt, turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))}
	if r.Client, r.Dialer, err = kafkaclient.New(rt.Config.Kafka); err != nil {
		return err
	}
	if !rt.Config.Splits() && which == (Stages{Repartition: true}) {
		return errors.New("--stages repartition: with topics.keyed and without inputs there is nothing to split")
	}
	whom, tell, err := notifyOptions(rt.Config, rt.Log)
	if err != nil {
		return err
	}
	if err := rt.OpenPast(); err != nil {
		return err
	}
	if _, err := idKey(rt.Config.Privacy.IDKeyFile); err != nil {
		return err
	}
	warnOfReaders(&rt.Config, rt.Log)
	var topics topology
	err = kafkaclient.Settled(ctx,
		func(err error) { rt.Log.Warn("the brokers are choosing leaders: waiting", faultlog.Err(err)) },
		func() (err error) { topics, err = r.Prepare(ctx); return err })
	if err != nil {
		return kafkaclient.Explain(ctx, rt.Config.Kafka, err)
	}
	r.topics = topics
	r.confirmed.ask = func(ctx context.Context) error { return unchanged(ctx, r) }
	r.smallTopics = kafkaclient.WarnOfTopics(ctx, r.Client, rt.Config, rt.Log)
	if r.ingest, err = accept.New(ctx, &rt.Config, r.Client, r.book, rulesOf(rt)); err != nil {
		return err
	}
	stopTracing, err := startTracing(rt)
	if err != nil {
		return err
	}
	defer stopTracing()
	r.ends = func(ctx context.Context, marks []kafkaio.Mark) (bool, error) {
		return kafkaio.AtEnd(ctx, r.Client, marks)
	}
	r.begun.Store(true)
	ctx, stopped := logsStop(ctx, rt)
	defer func() { stopped(err) }()
	g, ctx := errgroup.WithContext(ctx)
	r.following.Store(true)
	if err := rt.ServeHTTP(ctx, g); err != nil {
		return err
	}
	tuned, err := r.follow(ctx, g)
	if err != nil {
		return err
	}
	g.Go(func() error { return r.watchTopology(ctx, topics) })
	g.Go(func() error { rt.troubles.Run(ctx.Done(), rt.taskStatuses); return nil })
	g.Go(func() error { r.book.Follow(ctx); return nil })
	if which.Models && tell {
		g.Go(func() error { return r.runNotify(ctx, whom) })
	}
	if err := r.runStages(ctx, g, which, tuned); err != nil {
		return err
	}
	return rt.WaitFor(ctx, g)
}

// logsStop returns a context that is done when ctx is, and what logs how a run has ended for that. Errors are for the
// caller.
func logsStop(ctx context.Context, rt *Engine) (context.Context, func(error)) {
	var told time.Time
	run, end := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		told = time.Now() // before any task knows
		end(context.Cause(ctx))
	})
	return run, func(err error) {
		if forget() || err != nil {
			end(nil)
			return
		}
		<-run.Done()
		tasks, without := rt.attempts.Ended(told)
		say, checkpoints := rt.Log.Info, "written"
		if len(without) > 0 {
			say, checkpoints = rt.Log.Warn, fmt.Sprintf("missing of %v: what came after the ones before is read again",
				without)
		}
		say("stopped", "because", context.Cause(ctx).Error(), "took", time.Since(told).Round(time.Millisecond), "tasks",
			tasks, "last_checkpoints", checkpoints)
	}
}

// runStages joins the groups of the stages. Shards wait until the heads that they run have been read.
func (r *KafkaRun) runStages(ctx context.Context, g *errgroup.Group, which Stages, tuned <-chan struct{}) error {
	awaitStages(r, which)
	if which.Repartition || which.Shards {
		g.Go(func() error { return r.runSplitters(ctx, which) })
	}
	if which.Shards {
		g.Go(func() error { return growing{r}.steps(ctx) })
		g.Go(func() error {
			select {
			case <-tuned:
				return r.runShards(ctx)
			case <-ctx.Done():
				return nil
			}
		})
	}
	if which.Models {
		r.recalls.due = make(chan struct{}, 1)
		g.Go(func() error { fillUps(ctx, r); return nil })
		g.Go(func() error { return r.runModels(ctx) })
	}
	return nil
}

// Names of stages whose tasks a group gives.
const (
	stageShards = "shard"
	stageModels = "model"
)

func splitterOf(s scale.Source) string {
	if s.As != nil {
		return "input-" + s.Topic
	}
	return "repartition-" + s.Input.String()
}

// awaitStages notes which stages this process takes part in, before it joins their groups.
func awaitStages(r *KafkaRun, which Stages) {
	plan, _ := r.book.Now()
	if which.Repartition || which.Shards && plan.Split {
		split, _ := plan.Sources(&r.Config)
		for _, s := range split {
			r.due.await(splitterOf(s))
		}
	}
	if which.Shards {
		r.due.await(stageShards)
	}
	if which.Models {
		r.due.await(stageModels)
	}
}

// WaitFor waits for the end of g, and for no longer than the configured time once ctx is done.
func (rt *Engine) WaitFor(ctx context.Context, g *errgroup.Group) error {
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(rt.Config.ShutdownTimeout, func() { close(late) }) })()
	var err error
	select {
	case err = <-done:
	case <-late:
		err = fmt.Errorf("not stopped within shutdown_timeout, %s: the last checkpoints may be missing; "+
			"nothing is lost by it", rt.Config.ShutdownTimeout)
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			err = errors.Join(cause, err)
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Prepare checks the topics and opens the sink and the checkpoints.
func (r *KafkaRun) Prepare(ctx context.Context) (topology, error) {
	t, err := r.askTopology(ctx)
	if err != nil {
		return t, err
	}
	for _, topic := range r.Config.InputTopics() {
		if _, err := kafkaio.Partitions(ctx, r.Client, topic); err != nil {
			return t, err
		}
	}
	if r.store, err = r.openStore(ctx); err != nil {
		return t, err
	}
	began, err := hasBegun(ctx, r)
	if err != nil {
		return t, err
	}
	if !began { // the plan is there before what says that shards may have begun
		if err := r.openBook(ctx, t[0].partitions); err != nil {
			return t, err
		}
		if err := beginSplit(ctx, r, false); err != nil {
			return t, err
		}
	}
	if t, err = r.checkTopology(ctx, t); err != nil {
		return t, err
	}
	r.panes = t[2].partitions
	if err := r.openBook(ctx, t[0].partitions); err != nil {
		return t, err
	}
	if err := beginSplit(ctx, r, true); err != nil {
		return t, err
	}
	s, err := kafkaio.NewSink(ctx, r.Client, outputTopics(r.Config), r.Config.Kafka.MessageMax, r.Log)
	if err != nil {
		return t, err
	}
	r.sink, r.orders = teeSink{decisionlog.Recorder{Sink: s}, r.Engine}, OrderTaker{r.Engine, s, r.ScanTopics}
	return t, nil
}

// openStore opens what holds the checkpoints.
func (r *KafkaRun) openStore(ctx context.Context) (pipeline.CheckpointStore, error) {
	c := r.Config.Checkpoints
	if c.Store == pipeline.StoreTopic {
		return kafkaio.NewStore(ctx, kafkaio.StoreSpec{
			Client:   r.Client,
			Topic:    r.Config.Topics.Checkpoints,
			Keep:     c.Keep,
			MaxBytes: r.Config.Kafka.MessageMax,
			Log:      r.Log,
		})
	}
	return &dirstore.Store{Dir: c.Dir, Keep: c.Keep}, nil
}

func outputTopics(cfg config.Config) map[pipeline.Stream]string {
	t := cfg.Topics
	m := map[pipeline.Stream]string{pipeline.StreamPanes: t.Panes, pipeline.StreamSnapshots: t.Snapshots,
		pipeline.StreamCalibrators: t.Calibrators, pipeline.StreamTops: t.Calibrators,
		pipeline.StreamAlerts: t.Alerts, pipeline.StreamDeadLetter: t.DeadLetter}
	if t.Decisions != "" {
		m[pipeline.StreamHistory] = t.Decisions
	}
	if cfg.Trigger.Enabled {
		m[pipeline.StreamFinetune] = t.Finetune
	}
	if cfg.Trigger.Enabled || cfg.Heads.Shadow {
		m[pipeline.StreamHeads] = t.Heads
	}
	if cfg.Calibrated.Enabled {
		m[pipeline.StreamCalibrated] = t.Calibrated
	}
	return m
}

func (r *KafkaRun) runner(stage string, guard pipeline.Guard, trace *tracing.Lane) pipeline.Runner {
	return pipeline.Runner{Group: r.Config.Group + "/" + stage, Store: r.store, Sink: r.sink,
		Interval: r.Config.Checkpoints.Interval, Restoring: r.Restoring, Guard: guard, Trace: trace, Log: r.Log,
		Anew: r.Anew, Confirm: r.confirmed.now}
}

// runShards runs the shards, as many as the plan says.
func (r *KafkaRun) runShards(ctx context.Context) error {
	return r.book.ForEachNumber(ctx, func(ctx context.Context, plan scale.Plan) error {
		topics := plan.Inputs(&r.Config)
		var names []string
		for _, in := range slices.Sorted(maps.Keys(topics)) {
			names = append(names, topics[in])
		}
		g := kafkaio.Group{ID: r.Config.Group + "-shards" + plan.Suffix(), Brokers: r.Config.Kafka.Brokers,
			Dialer: r.Dialer, Topics: names, Log: r.Log,
			Silent: r.heardNothing(stageShards), Client: r.Client, Session: r.Config.Kafka.Session,
			Members: filepath.Join(r.workDir(), "members")}
		r.due.follow(&g, stageShards, plan.Of)
		return g.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
			return growing{r}.runShard(ctx, p, r.source(taskName(stageShards, p), topics, p, commit))
		})
	})
}

// shard runs one shard until ctx is done or an error. If the number of shards is changing, it seals the shard's state.
func (r *KafkaRun) shard(ctx context.Context, guard *attempts.Guard, p int, open pipeline.Open) error {
	name := taskName(stageShards, p)
	defer r.remove(name)
	plan, _ := r.book.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var s *pipeline.Shard
	trace := laneOf(r, stageShards, r.Config.Group+"-shards"+plan.Suffix())
	err := pipeline.Run(ctx, r.runner("shards", guard, trace), func() (pipeline.Registered, error) {
		var err error
		if s, err = r.NewShard(p, plan.Of, r.panes); err != nil {
			return pipeline.Registered{}, err
		}
		s.Follow(trace)
		r.add(name, s)
		out := shardTask(r, s)
		if plan.To != 0 {
			out.Waiter = sealing{stop}
		}
		return out, nil
	}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		if err := s.Usable(); err != nil {
			return pipeline.Opened{}, err
		}
		return open(next)
	})
	return lasting(gone("shards", p, err))
}

func (r *KafkaRun) runModels(ctx context.Context) error {
	g := kafkaio.Group{ID: r.Config.Group + "-models", Brokers: r.Config.Kafka.Brokers, Dialer: r.Dialer,
		Topics: []string{r.Config.Topics.Panes}, Log: r.Log,
		Silent: r.heardNothing(stageModels), Client: r.Client, Session: r.Config.Kafka.Session,
		Members: filepath.Join(r.workDir(), "members")}
	r.due.follow(&g, stageModels, r.panes)
	shareModels(r.Engine, &g, r.panes)
	return g.Run(ctx, func(ctx context.Context, p int, commit kafkaio.CommitFunc) error {
		if p >= r.panes { // watchTopology names it
			<-ctx.Done()
			return nil
		}
		id := attempts.ID{Task: stageModels, Partition: p}
		var alerts atomic.Bool
		return r.attempts.Run(ctx, id, func(ctx context.Context, guard *attempts.Guard) error {
			topics := map[pipeline.Input]string{pipeline.Panes: r.Config.Topics.Panes}
			return r.model(ctx, guard, p, &alerts, r.source(taskName(stageModels, p), topics, p, commit))
		})
	})
}

// model runs one model task until ctx is done or an error. alerts is reminder.alerts.
func (r *KafkaRun) model(
	ctx context.Context, guard *attempts.Guard, p int, alerts *atomic.Bool, open pipeline.Open,
) error {
	name := taskName(stageModels, p)
	defer r.remove(name)
	var task *model.Task
	trace := laneOf(r, stageModels, r.Config.Group+"-models")
	err := pipeline.Run(ctx, r.runner("models", guard, trace), func() (pipeline.Registered, error) {
		counts := pipeline.NewCounts()
		task = r.NewModelTask(p, counts)
		task.Trace = trace
		r.add(name, task)
		out := modelTask(r, task, p, alerts)
		out.Counts = counts
		return out, nil
	}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		r.recall(p, task)
		return open(next)
	})
	return lasting(gone("models", p, err))
}

// shareModels has the history told which tasks another process has, once the group says so. Between two generations
// this process has none, and is likely to keep its own.
func shareModels(rt *Engine, g *kafkaio.Group, panes int) {
	rt.History.Share(func(model string) int { return murmur.PartitionOf([]byte(model), panes) })
	has := g.Has
	g.Has = func(partitions []int, member bool) {
		for p := range panes {
			if member && !slices.Contains(partitions, p) {
				rt.History.Leave(p)
			}
		}
		has(partitions, member)
	}
}

// recall shows the records in the state of a restored task, which is of this process from then on. Snapshots are many,
// and the history sorts them whenever they come: they are shown in the background, one task's after the other's, while
// tasks still restore. The last of the tasks has the history filled up.
func (r *KafkaRun) recall(p int, task *model.Task) {
	decided, snapshots := task.Remembered()
	for _, rec := range decided {
		r.Show(rec)
	}
	lacks := r.History.Return(p)
	r.recalls.wait.Add(1)
	go func() {
		r.recalls.Lock()
		defer r.recalls.Unlock()
		r.recalls.lacks = r.recalls.lacks || lacks
		if err := r.recallSnapshots(snapshots); err != nil {
			r.Log.Error("snapshots of a checkpoint cannot be shown", "err", err)
		}
		if r.recalls.wait.Add(-1) == 0 && r.recalls.lacks {
			r.recalls.lacks = false
			select {
			case r.recalls.due <- struct{}{}:
			default: // it is to be filled up already
			}
		}
	}()
}

// recalls shows what tasks remember, one task at a time.
type recalls struct {
	sync.Mutex
	wait  atomic.Int32  // tasks
	lacks bool          // the history lacks a task's past
	due   chan struct{} // to fill the history up
}

// pastSnapshots is how far back fillUp looks in each partition, in offsets: an hour of one model by default.
const pastSnapshots = 2048

// pastBytes is the most bytes of a snapshot that is read back; with 3600 bins it has fewer. Decoded, one of a stranger
// is twenty times as large.
const pastBytes = 2 << 20

// fillUps fills the history up whenever it is due, apart from the tasks: what they remember is shown and they may leave
// while brokers do not let the topic be read. What fails is tried again: brokers return, and rights are given.
func fillUps(ctx context.Context, r *KafkaRun) {
	pause, said := backoff.New(time.Second, time.Minute), false
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.recalls.due:
		case <-again:
		}
		again = nil
		err := fillUp(ctx, r)
		if err == nil || ctx.Err() != nil {
			pause.Reset()
			said = false
			continue
		}
		again = time.After(pause.Next())
		if !said {
			r.Log.Info("the page shows no snapshots of before this process until they can be read", "topic",
				r.Config.Topics.Snapshots, "err", kafkaclient.Explain(ctx, r.Config.Kafka, err))
		}
		said = true
	}
}

// fillUp adds, to the series that there are, the snapshots of before this process had them: a state has only the
// latest. Without them all that is shown still holds, and begins now.
func fillUp(ctx context.Context, r *KafkaRun) error {
	topic := r.Config.Topics.Snapshots
	n, err := kafkaio.Partitions(ctx, r.Client, topic)
	for p := 0; p < n && err == nil; p++ {
		past := kafkaio.Latest{Topic: topic, Partition: p, Offsets: pastSnapshots}
		err = past.Read(ctx, r.tailSpec(), func(rec *pipeline.Record) {
			if err := showPast(r.Engine, rec); err != nil {
				r.Log.Debug("record is no snapshot", "topic", topic, "partition", p, "offset", rec.Offset, "err", err)
			}
		})
	}
	return err
}

// showPast adds a record of the topic to the history.
func showPast(rt *Engine, rec *pipeline.Record) (err error) {
	defer pipeline.Caught(&err)
	if len(rec.Value) > pastBytes {
		return fmt.Errorf("%d bytes, at most %d are read back", len(rec.Value), pastBytes)
	}
	s, err := record.Decode[record.Snapshot](rec.Value)
	if err == nil {
		rt.History.AddPast(s)
	}
	return err
}

// recallSnapshots shows the snapshots that can be decoded.
func (r *KafkaRun) recallSnapshots(snapshots iter.Seq2[*record.Snapshot, error]) (err error) {
	defer pipeline.Caught(&err)
	for s, err := range snapshots {
		if err != nil {
			r.Log.Error("snapshot of a checkpoint cannot be shown", "err", err)
			continue
		}
		r.Show(s)
	}
	return nil
}

// lasting marks errors that only a person can fix: the task is retried each minute.
func lasting(err error) error {
	if errors.Is(err, pipeline.ErrUnusable) || errors.Is(err, kafka.OffsetOutOfRange) {
		return attempts.Lasting(err)
	}
	return err
}

func (r *KafkaRun) source(name string, topics map[pipeline.Input]string, p int,
	commit kafkaio.CommitFunc) func(map[pipeline.Input]int64) (pipeline.Opened, error) {
	_, models := topics[pipeline.Panes]
	return func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
		src := kafkaio.NewSource(kafkaio.Spec{
			Client:      r.Client,
			Topics:      topics,
			Partition:   p,
			Next:        next,
			MaxBytes:    r.Config.Kafka.FetchMax,
			IdleTimeout: r.Config.EventTime.IdleTimeout,
			MaxAhead:    maxAhead(r.Engine, models),
			Commit:      commit,
			Gate:        &r.gate,
			ReportPause: !models,
			Log:         r.Log,
		})
		r.reads(name, src)
		return pipeline.Opened{Source: src, Visibility: src}, nil
	}
}

// maxAhead is that of records; panes have no time of producers.
func maxAhead(rt *Engine, models bool) time.Duration {
	if models {
		return 0
	}
	return rt.Config.EventTime.MaxAhead
}

// ServeHTTP starts the page, the API and the metrics; the listener is bound before it returns.
func (rt *Engine) ServeHTTP(ctx context.Context, g *errgroup.Group) error {
	if rt.Config.HTTP.Listen == "" && rt.Listener == nil {
		return nil
	}
	l := rt.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", rt.Config.HTTP.Listen); err != nil {
			return fmt.Errorf("http.listen %q: %w", rt.Config.HTTP.Listen, err)
		}
	}
	pages := web.KnownHosts(rt.pages(web.OnLoopback(l.Addr())), HostNames(&rt.Config.HTTP)...)
	srv := web.Server(rt.Config.HTTP.Listen, pages, faultlog.Lines(rt.Log, "http server"))
	serve, scheme := srv.Serve, "http://"
	if file := rt.Config.HTTP.WebConfig; file != "" {
		if err := exporter.Validate(file); err != nil {
			return fmt.Errorf("http.web_config_file %s: %w", file, err)
		}
		scheme = "" // the file says, and may be changed while we run
		serve = func(l net.Listener) error {
			return exporter.Serve(l, srv, &exporter.FlagConfig{WebConfigFile: &file}, rt.Log)
		}
	}
	rt.Log.Info("serving", "url", scheme+l.Addr().String())
	web.Serve(ctx, g, srv, l, serve)
	return nil
}

// pages returns the handler of the page, the API, the metrics and, if configured, Go's profiles.
func (rt *Engine) pages(loopback bool) http.Handler {
	var control web.Control
	if rt.Config.HTTP.Control {
		control = &rt.Pauser
	}
	handler := web.New(web.Deps{
		History:  rt.History,
		Status:   func() any { return rt.Status() },
		Versions: rt.versionsInState,
		Ready:    rt.Ready,
		Control:  control,
		Who:      web.People{File: rt.Config.HTTP.WebConfig, Loopback: loopback}.Who,
		Orders:   rt.orders,
		Heads:    rt.headsAPI(),
		Past:     rt.webPast(),
		Metrics: metrics.Handler(rt.History,
			metrics.Options{Worst: rt.Config.HTTP.Slices, Silent: rt.Config.EventTime.SilentAfter}, rt.taskStatuses,
			append(rt.collectors(), heads.Metrics{Jobs: rt.Tuning.Jobs})...),
		Ingest:    rt.ingest,
		Calibrate: calibrate.New(LatestCalibrators{rt}, rt.Log),
		Log:       rt.Log,
	})
	if rt.Config.HTTP.Pprof {
		handler = withProfiles(handler)
	}
	return handler
}

// withProfiles serves Go's profiles under /debug/pprof/ beside h.
func withProfiles(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("/", h)
	return mux
}

// HostNames returns the server's host names beside addresses: the configured ones, the one in http.listen, and the
// machine's.
func HostNames(c *web.Config) []string {
	names := append([]string{}, c.Hosts...)
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		names = append(names, host)
	}
	return append(names, Hostname())
}
