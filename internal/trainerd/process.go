package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/filelock"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/service"
	"github.com/plumbline/plumbline/web"
)

// Options are the flags of `plumbline trainer`.
type Options struct {
	Once   bool   // end after one job
	Listen string // address of metrics and health; none where it is empty
	Bound  func(*data.Set) (undo func())
}

// Run works until ctx is done.
func Run(ctx context.Context, cfg config.Config, o Options, log *slog.Logger) error {
	runner, err := NewRunner(Loader{Config: cfg, Log: log, bound: o.Bound})
	if err != nil {
		return err
	}
	return RunWith(ctx, cfg, o, runner, log)
}

// RunWith is Run with something else that trains.
func RunWith(ctx context.Context, cfg config.Config, o Options, runner service.Runner, log *slog.Logger) error {
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	unlock, err := Lock(cfg.Trainer)
	if err != nil {
		return err
	}
	defer unlock()
	free, err := lockDevice(cfg.Trainer, os.TempDir(), log)
	if err != nil {
		return err
	}
	defer free()
	options := serviceOptions(cfg.Trainer, o, runner, log)
	options.Publish, err = heads.Publisher(ctx, client, cfg, log)
	if err != nil {
		return err
	}
	p := &process{Service: service.New(options), log: log, ready: make(chan struct{})}
	g, ctx := errgroup.WithContext(ctx)
	if err := p.follow(ctx, g, client, cfg); err != nil {
		return err
	}
	if err := p.serve(ctx, g, o.Listen, cfg.HTTP); err != nil {
		return err
	}
	g.Go(func() error {
		if err := p.Run(ctx); err != nil || !o.Once || ctx.Err() != nil {
			return err
		}
		return errTrainerDone
	})
	log.Info("trainer", "name", trainerName(cfg.Trainer), "dir", cfg.Trainer.Dir)
	if err := g.Wait(); err != nil && !errors.Is(err, errTrainerDone) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// process is the service between its topics and its metrics.
type process struct {
	*service.Service
	log   *slog.Logger
	ready chan struct{} // closed when the topics have been read to their ends
}

// follow reads requests and heads, from their start and for ever.
func (p *process) follow(ctx context.Context, g *errgroup.Group, client *kafka.Client, cfg config.Config) error {
	take := func(read func([]byte) (service.Entry, error)) func(*pipeline.Record) error {
		return func(r *pipeline.Record) error {
			e, err := read(r.Value)
			if err == nil {
				p.Take(ctx, e)
			}
			return err
		}
	}
	caughtUp := func() {
		p.Take(ctx, service.Entry{CaughtUp: true})
		close(p.ready)
	}
	spec := kafkaio.TailSpec{Client: client, MaxBytes: cfg.Kafka.FetchMax, Log: p.log}
	topics := []kafkaio.Tailed{
		{Topic: cfg.Topics.Finetune, Take: take(service.ReadRequest)},
		{Topic: cfg.Topics.Heads, Take: take(service.ReadHeads)},
	}
	if err := kafkaio.Tail(ctx, g, spec, topics, caughtUp); err != nil {
		return kafkaclient.Explain(ctx, cfg.Kafka, err)
	}
	return nil
}

// errTrainerDone ends a trainer that was to do one job.
var errTrainerDone = errors.New("done")

// serviceOptions are those of the service that runs the jobs, without what it publishes by.
func serviceOptions(c service.Config, o Options, runner service.Runner, log *slog.Logger) service.Options {
	c.Name, c.Dir = trainerName(c), filepath.Join(c.Dir, "jobs")
	return service.Options{Config: c, Pause: c.LostAfter, Runner: runner, Log: log, Once: o.Once}
}

func trainerName(t service.Config) string {
	if t.Name != "" {
		return t.Name
	}
	return engine.Hostname()
}

// Lock refuses a second trainer of a name on one directory: they would take each other's jobs for their own.
func Lock(t service.Config) (unlock func(), err error) {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("trainer.dir: %w", err)
	}
	file := filepath.Join(t.Dir, "trainer-"+trainerName(t)+".lock")
	f, err := filelock.Open(file)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("%s is held: a trainer %q runs on this directory already (set trainer.name)", file,
			trainerName(t))
	case err != nil:
		return nil, fmt.Errorf("trainer.dir: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// serve serves metrics and health where an address is given.
func (p *process) serve(ctx context.Context, g *errgroup.Group, listen string, c web.Config) error {
	if listen == "" {
		return nil
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen %q: %w", listen, err)
	}
	c.Listen = listen
	srv := web.Server(listen, p.handler(c), faultlog.Lines(p.log, "http server"))
	p.log.Info("serving", "url", "http://"+l.Addr().String())
	web.Serve(ctx, g, srv, l, srv.Serve)
	return nil
}

// handler is the pages under the names that the port has.
func (p *process) handler(c web.Config) http.Handler {
	return web.KnownHosts(p.pages(), engine.HostNames(&c)...)
}

func (p *process) pages() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(heads.Metrics{Jobs: p.Jobs})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "plumbline trainer is healthy")
	})
	mux.HandleFunc("/-/ready", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-p.ready:
			fmt.Fprintln(w, "plumbline trainer is ready")
		default:
			http.Error(w, "not ready: the topics have not been read yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}
