package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/accept"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// Stages says which stages a process runs.
type Stages struct{ Shards, Models, Repartition bool }

// Run serves until ctx is done or until an error that retrying cannot fix. It checks the topics and opens the store,
// then joins the groups; each task restores its state before it reads.
func (rt *Engine) Run(ctx context.Context, which Stages) (err error) {
	d := deployment.New(&rt.Config, rt.Log)
	if err := d.Connect(); err != nil {
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
	sink, err := rt.open(ctx, d)
	if err != nil {
		return err
	}
	rt.smallTopics = kafkaclient.WarnOfTopics(ctx, d.Client, rt.Config, rt.Log)
	if rt.ingest, err = accept.New(ctx, &rt.Config, d.Client, d.Book, rt.rules()); err != nil {
		return err
	}
	stopTracing, err := rt.traces.start(rt.Config.Tracing, rt.Log)
	if err != nil {
		return err
	}
	defer stopTracing()
	rt.ends = func(ctx context.Context, marks []kafkaio.Mark) (bool, error) {
		return kafkaio.AtEnd(ctx, d.Client, marks)
	}
	rt.begun.Store(true)
	ctx, stopped := logsStop(ctx, rt.attempts, rt.Log)
	defer func() { stopped(err) }()
	g, ctx := errgroup.WithContext(ctx)
	rt.following.Store(true)
	if err := rt.ServeHTTP(ctx, g); err != nil {
		return err
	}
	tuned, err := follower{d, rt.view, rt.past}.follow(ctx, g)
	if err != nil {
		return err
	}
	h := &host{Deployment: d, process: rt.process, traces: &rt.traces, sink: sink, anew: rt.Anew,
		restoring: rt.Restoring}
	watch := topicsWatch{Deployment: d, process: rt.process}
	g.Go(func() error { return watch.run(ctx, rt.WatchEvery) })
	g.Go(func() error { rt.process.troubles.Run(ctx.Done(), rt.taskStatuses); return nil })
	g.Go(func() error { d.Book.Follow(ctx); return nil })
	if which.Models {
		g.Go(func() error {
			return rt.view.alerts.follow(ctx, d.TailSpec(), rt.Config.Topics.Alerts, func(ctx context.Context) error {
				if tell {
					return notifier{h, &rt.view.alerts, &rt.notified}.run(ctx, whom)
				}
				<-ctx.Done()
				return nil
			})
		})
	}
	rt.runStages(ctx, g, h, which, tuned)
	return rt.WaitFor(ctx, g)
}

// runStages joins the groups of the stages. Shards wait until the heads that they run have been read.
func (rt *Engine) runStages(ctx context.Context, g *errgroup.Group, h *host, which Stages, tuned <-chan struct{}) {
	h.await(which)
	if which.Repartition || which.Shards {
		split := splitter{h, &rt.builder, rt.WatchEvery}
		g.Go(func() error { return split.run(ctx, which.Repartition) })
	}
	if which.Shards {
		shards := shardStage{host: h, build: &rt.builder}
		g.Go(func() error { return shards.steps(ctx) })
		g.Go(func() error {
			select {
			case <-tuned:
				return shards.run(ctx)
			case <-ctx.Done():
				return nil
			}
		})
	}
	if which.Models {
		models := newModelStage(h, &rt.builder, rt.view)
		g.Go(func() error { models.recall.Run(ctx); return nil })
		g.Go(func() error { return models.run(ctx) })
	}
}

// open opens the deployment and what it writes to, and lets people's orders in.
func (rt *Engine) open(ctx context.Context, d *deployment.Deployment) (pipeline.Sink, error) {
	var sink pipeline.Sink
	err := kafkaclient.Settled(ctx,
		func(err error) { rt.Log.Warn("the brokers are choosing leaders: waiting", faultlog.Err(err)) },
		func() (err error) {
			if err = d.Open(ctx); err == nil {
				sink, err = kafkaio.NewSink(ctx, d.Client, outputTopics(rt.Config), rt.Config.Kafka.MessageMax, rt.Log)
			}
			return err
		})
	if err != nil {
		return nil, kafkaclient.Explain(ctx, rt.Config.Kafka, err)
	}
	rt.book, rt.plans = d.Book, d.Book
	rt.process.troubles.Keyed.Store(!d.Plan().Split)
	rt.orders = OrderTaker{rt, sink, d.ScanTopics}
	return teeSink{decisionlog.Recorder{Sink: sink}, rt.view}, nil
}

// logsStop returns a context that is done when ctx is, and what logs how a run has ended for that. Errors are for the
// caller.
func logsStop(ctx context.Context, tasks *attempts.Tasks, log *slog.Logger) (context.Context, func(error)) {
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
		ended, without := tasks.Ended(told)
		say, checkpoints := log.Info, "written"
		if len(without) > 0 {
			say, checkpoints = log.Warn, fmt.Sprintf("missing of %v: what came after the ones before is read again",
				without)
		}
		say("stopped", "because", context.Cause(ctx).Error(), "took", time.Since(told).Round(time.Millisecond), "tasks",
			ended, "last_checkpoints", checkpoints)
	}
}

// await notes which stages this process takes part in, before it joins their groups.
func (h *host) await(which Stages) {
	plan := h.Plan()
	if which.Repartition || which.Shards && plan.Split {
		split, _ := plan.Sources(h.Config)
		for _, s := range split {
			h.process.due.await(deployment.SplitterOf(s))
		}
	}
	if which.Shards {
		h.process.due.await(stageShards)
	}
	if which.Models {
		h.process.due.await(stageModels)
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
