package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/examples/digits"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/producer"
	"github.com/plumbline/plumbline/pipeline"
)

// UsageError is an error of whoever gave the options.
type UsageError struct{ error }

// Options are the flags of `plumbline demo`.
type Options struct {
	Length   time.Duration
	Seed     uint64
	Headless bool
	Listen   string
	Dir      string
	Linger   bool // keep the page up after the story
	unpaced  bool // as fast as the machine can: for tests
}

// Run runs the whole thing and hands the result to report, also that of a run which broke off, before it lingers.
func Run(ctx context.Context, o Options, lines *Lines, report func(Result) error) (Result, error) {
	began := time.Now()
	dir, remove, err := openDir(o.Dir)
	if err != nil {
		return Result{}, err
	}
	defer remove()
	log, closeLog, err := newLogger(dir)
	if err != nil {
		return Result{}, err
	}
	defer closeLog()

	plan := newPlan(o.Length, o.Seed)
	lines.plain("seed %d: %d rows in about %v; the same seed and length give the same on any machine of a kind", o.Seed,
		plan.Rows, o.Length)
	lines.plain("lines begin with event time, which starts at %s and runs %d times as fast as the clock",
		startTime.Format(time.RFC3339), speed)
	d := &runner{options: o, plan: plan, lines: lines, dir: dir, began: began}
	if err := d.train(ctx); err != nil {
		return Result{}, err
	}
	return d.withBroker(ctx, log, report)
}

// withBroker starts the broker, and what stands on it.
func (d *runner) withBroker(ctx context.Context, log *slog.Logger, report func(Result) error) (Result, error) {
	cluster, err := startBroker(d.dir)
	if err != nil {
		return Result{}, err
	}
	defer cluster.Close()
	d.cfg = d.plan.config(cluster.ListenAddrs()[0], d.dir, "")
	topics, err := makeTopics(ctx, d.cfg)
	if err != nil {
		return Result{}, err
	}
	d.lines.plain("kafka at %s in this process: %d topics, %d partitions, data in %s", d.cfg.Kafka.Brokers[0], topics,
		d.cfg.Kafka.Partitions, d.dir)

	if err := writeHead(d.net, d.cfg); err != nil {
		return Result{}, err
	}
	d.engine = engine.New(d.cfg, log)
	if err := d.openPage(); err != nil {
		return Result{}, err
	}
	d.story = newStory(d.plan, d.lines)
	d.engine.Listen = d.story.take
	return d.withEngine(ctx, report)
}

// runner is one run of the demo.
type runner struct {
	options Options
	plan    plan
	lines   *Lines
	dir     string
	cfg     config.Config
	engine  *engine.Engine
	story   *story
	began   time.Time
	page    string

	net      *digits.Network
	held     digits.Set
	accuracy float64
}

// train makes the model, or gives up when ctx is done.
func (d *runner) train(ctx context.Context) error {
	set, err := digits.Load()
	if err != nil {
		return err
	}
	train, held := set.Split(d.plan.Seed)
	began := time.Now()
	trained := make(chan *digits.Network, 1)
	go func() { trained <- digits.Train(train, d.plan.Seed) }()
	select {
	case d.net = <-trained:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.held = held
	d.accuracy = accuracy(d.net, held)
	d.lines.plain("model trained on %d of %d images of digits in %.1f s: accuracy %s on the others", len(train.Images),
		len(set.Images), time.Since(began).Seconds(), percent(&d.accuracy))
	return nil
}

func accuracy(net *digits.Network, set digits.Set) float64 {
	hits := 0
	for i := range set.Images {
		_, z := net.Forward(&set.Images[i])
		top := 0
		for k := range z {
			if z[k] > z[top] {
				top = k
			}
		}
		if int32(top) == set.Labels[i] {
			hits++
		}
	}
	return float64(hits) / float64(len(set.Images))
}

// openPage binds the address of the page, or a free port where it is taken.
func (d *runner) openPage() error {
	if d.options.Headless {
		return nil
	}
	l, err := net.Listen("tcp", d.options.Listen)
	instead := ""
	if err != nil {
		host, _, splitErr := net.SplitHostPort(d.options.Listen)
		if splitErr != nil {
			return fmt.Errorf("--listen %q: %w", d.options.Listen, splitErr)
		}
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return fmt.Errorf("--listen %q: %w", d.options.Listen, err)
		}
		instead = fmt.Sprintf(" (%s is taken)", d.options.Listen)
	}
	d.engine.Listener = l
	d.page = "http://" + l.Addr().String()
	d.lines.plain("page at %s%s: open it while the story goes on", d.lines.mark(d.page), instead)
	return nil
}

// stopWait bounds how long the pipeline may take to stop: Ctrl-C answers within two seconds.
const stopWait = 1500 * time.Millisecond

// withEngine runs the pipeline, and the stream beside it.
func (d *runner) withEngine(ctx context.Context, report func(Result) error) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var trainer sync.WaitGroup
	trainer.Go(func() {
		if err := d.runTrainer(ctx, d.engine.Log); err != nil {
			cancel(err)
		}
	})
	go func() {
		defer close(ended)
		err := d.engine.Run(ctx, engine.Stages{Shards: true, Models: true})
		defer trainer.Wait()
		if err == nil {
			err = errors.New("the pipeline ended")
		}
		cancel(err)
	}()
	defer func() {
		cancel(nil)
		select {
		case <-ended:
		case <-time.After(stopWait):
		}
	}()
	result, err := d.tell(ctx)
	if err = errors.Join(err, report(result)); err != nil {
		return result, err
	}
	if d.options.Linger {
		d.lines.plain("the page stays up at %s until Ctrl-C", d.page)
		<-ctx.Done()
	}
	return result, nil
}

// tell runs the stream and sums up. Where it breaks off the result says why, and has what came before.
func (d *runner) tell(ctx context.Context) (Result, error) {
	broken := d.stream(ctx)
	if broken != nil && ctx.Err() != nil {
		broken = context.Cause(ctx) // why the pipeline ended, where that is what stopped the stream
	}
	r, err := d.story.result()
	if err != nil {
		return r, errors.Join(broken, err)
	}
	r.ModelAccuracy, r.StateHash = d.accuracy, d.engine.Status().StateHash
	r.Wall = Wall{Seconds: time.Since(d.began).Seconds(), Page: d.page, Dir: d.options.Dir}
	if broken != nil {
		r.LoopClosed, r.Reasons = false, append(r.Reasons, "the run broke off: "+broken.Error())
		return r, broken
	}
	d.summary(&r)
	return r, nil
}

// stream sends everything and waits until it is processed.
func (d *runner) stream(ctx context.Context) error {
	if err := d.await(ctx, d.assigned); err != nil {
		return err
	}
	client, _, err := kafkaclient.New(d.cfg.Kafka)
	if err != nil {
		return err
	}
	f, err := d.plan.feed(d.net, d.held, d.cfg.Kafka.Partitions, d.gate(ctx))
	if err != nil {
		return err
	}
	if _, err := producer.Send(ctx, client, f, producer.Options{Logits: d.cfg.Topics.Logits,
		Labels: d.cfg.Topics.Labels, Rate: d.rate()}); err != nil {
		return err
	}
	return d.await(ctx, d.drained)
}

// drainTime is about how long the last rows take through the pipeline.
const drainTime = 2 * time.Second

// rate paces the rows so that the run ends after --for; a slow start is made up for by at most a quarter more.
func (d *runner) rate() float64 {
	if d.options.unpaced {
		return 0
	}
	left := max(d.options.Length-time.Since(d.began)-drainTime, d.options.Length*4/5)
	return float64(d.plan.Rows) / left.Seconds()
}

// assigned reports whether every partition has its task.
func (d *runner) assigned(tasks []*pipeline.TaskStatus) bool {
	return len(tasks) == 2*d.cfg.Kafka.Partitions
}

// drained reports whether every shard has read the two watermarks that end its inputs, and the model tasks have
// written all that the shards closed by them.
func (d *runner) drained(tasks []*pipeline.TaskStatus) bool {
	if !d.assigned(tasks) {
		return false
	}
	end := pipeline.NoTime
	for _, t := range tasks {
		if t.Task == "shard" {
			end = max(end, t.WM)
		}
	}
	for _, t := range tasks {
		shard := t.Task == "shard"
		if t.WM < end || shard && t.Counts[pipeline.CountControl] != 2 || !shard && t.Next["panes"] > 0 && !t.CaughtUp {
			return false
		}
	}
	return d.engine.Status().StateHash != ""
}

// stuck is how long nothing may happen before the demo gives up.
const stuck = time.Minute

// await polls the tasks until they are as wanted.
func (d *runner) await(ctx context.Context, wanted func([]*pipeline.TaskStatus) bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		tasks, complete := d.engine.Statuses()
		if complete && wanted(tasks) {
			return nil
		}
		for _, t := range tasks {
			if t.Active.After(last) {
				last = t.Active
			}
		}
		if time.Since(last) > stuck {
			return fmt.Errorf("nothing has happened in the pipeline for %v; see plumbline.log in --dir", stuck)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// summary ends the story.
func (d *runner) summary(r *Result) {
	verdict := d.lines.mark("the loop is closed")
	if !r.LoopClosed {
		verdict = d.lines.mark("THE LOOP IS NOT CLOSED") + ": " + strings.Join(r.Reasons, "; ")
	}
	d.lines.plain("%s; %d rows, %d labelled, %.1f s, state hash %.12s", verdict, r.Rows, r.Labelled, r.Wall.Seconds,
		r.StateHash)
	if b, a, c := r.ECEBeforeShift, r.ECEAfterShift, r.ECEAfterRefit; b != nil && a != nil && c != nil {
		d.lines.plain("ECE before the shift %s, after it %s, after the refit %s raw and %s calibrated",
			percent(b.Raw.ECE), percent(a.Raw.ECE), percent(c.Raw.ECE), percent(c.Calibrated.ECE))
	}
	if f := r.Finetune; f != nil && f.ShadowEvidence != nil {
		e := f.ShadowEvidence
		d.lines.plain("accuracy before the shift %s, after it %s, with the new head %s; "+
			"NLL with the calibrator %.3f, with the new head %.3f",
			percent(&f.Reference), percent(&e.Serving.Accuracy), percent(&e.Shadow.Accuracy), e.Serving.NLL,
			e.Shadow.NLL)
	}
}
