package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/embedded"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/kafkaclient"
)

// Options of a process without Kafka.
type Options struct {
	Dir    string
	Listen string // of the page, in place of what the configuration says; "" = as it says
	Log    *slog.Logger
	// Tell is called with each line for the user.
	Tell func(format string, args ...any)
}

// Serve runs everything in one process until ctx is done.
func Serve(ctx context.Context, o Options) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--embedded: %w", err)
	}
	cfg, found, err := configOf(dir)
	if err == nil && !found {
		if err = begin(dir, o.Listen); err == nil {
			cfg, _, err = configOf(dir)
		}
	}
	if err != nil {
		return err
	}
	to, err := moved(dir)
	if err != nil {
		return err
	}
	if to != "" {
		return fmt.Errorf("%w: the topics of %s were moved to %s: plumbline run -c %s", ErrUsage, dir, to,
			filepath.Join(dir, ConfigFile))
	}
	if o.Listen != "" {
		cfg.HTTP.Listen = o.Listen
	}
	broker, err := startBroker(dir, &cfg, o.Log)
	if err != nil {
		return err
	}
	defer broker.Close()
	if err := makeTopics(ctx, cfg); err != nil {
		return err
	}
	o.Tell("everything is in %s: configuration %s, records, state\n", dir, ConfigFile)
	o.Tell("page http://%s\nrows  POST http://%s/api/v1/ingest/MODEL/predictions and /labels\n", cfg.HTTP.Listen,
		cfg.HTTP.Listen)
	e := engine.New(cfg, o.Log)
	e.Anew = "another directory of --embedded, where all counts begin at 0"
	return e.Run(ctx, engine.Stages{Shards: true, Models: true, Repartition: true})
}

func startBroker(dir string, cfg *config.Config, log *slog.Logger) (*embedded.Server, error) {
	return embedded.Start(embedded.Options{Dir: filepath.Join(dir, "broker"), Listen: cfg.Kafka.Brokers[0],
		MessageMax: cfg.Kafka.MessageMax + kafkaclient.BatchOverhead, Log: log})
}

// makeTopics makes the topics of cfg that are not there.
func makeTopics(ctx context.Context, cfg config.Config) error {
	cfg.Kafka.Replication = 1
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return err
	}
	_, err = kafkaclient.CreateTopics(ctx, client, cfg)
	return err
}
