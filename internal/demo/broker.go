package demo

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/kafkaclient"
)

// openDir returns the directory of the run, and what removes it where it is a temporary one. A directory that is
// not empty is refused: the run would go on from what an earlier one left.
func openDir(path string) (dir string, done func(), err error) {
	if path == "" {
		if dir, err = os.MkdirTemp("", "plumbline-demo-"); err != nil {
			return "", nil, fmt.Errorf("temporary directory of the run: %w; --dir or TMPDIR names another place", err)
		}
		return dir, func() { _ = os.RemoveAll(dir) }, nil
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", nil, fmt.Errorf("--dir: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", nil, err
	}
	if len(entries) > 0 {
		return "", nil, UsageError{fmt.Errorf("--dir %q: is not empty (it holds %q): must be an empty directory or "+
			"a new one", path, entries[0].Name())}
	}
	return path, func() {}, nil
}

// startBroker runs a one-broker Kafka in this process, with its log segments in dir.
func startBroker(dir string) (*kfake.Cluster, error) {
	limit := strconv.Itoa(config.Default().Kafka.MessageMax + kafkaclient.BatchOverhead)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(filepath.Join(dir, "kafka")),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": limit}))
	if err != nil {
		return nil, fmt.Errorf("in-process kafka: %w", err)
	}
	return cluster, nil
}

// makeTopics makes the topics of cfg.
func makeTopics(ctx context.Context, cfg config.Config) (int, error) {
	client, _, err := kafkaclient.New(cfg.Kafka)
	if err != nil {
		return 0, err
	}
	topics, err := kafkaclient.CreateTopics(ctx, client, cfg)
	return len(topics), err
}

// newLogger writes to a file in dir: the story is what the terminal is for.
func newLogger(dir string) (*slog.Logger, func(), error) {
	f, err := os.Create(filepath.Join(dir, "plumbline.log"))
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(f, nil)), func() { _ = f.Close() }, nil
}
