package engine

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/internal/backup"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/sinks/metrics"
)

// Engine runs a deployment's tasks in this process.
type Engine struct {
	Config config.Config
	Log    *slog.Logger
	*view
	*process
	*past
	builder
	server
	traces traces

	Anew       string        // with what a deployment begins without its state (pipeline.Runner)
	WatchEvery time.Duration // between questions whether topics were made again
	// Restoring is called before a task is restored, and done after; nil = nobody wants to know.
	Restoring func() (done func())
}

// metadataInterval is how often a run asks whether topics were made again.
const metadataInterval = 10 * time.Second

// New returns an engine without tasks; Run, or a Replay, adds them.
func New(cfg config.Config, log *slog.Logger) *Engine {
	rt := &Engine{Config: cfg, Log: log, WatchEvery: metadataInterval}
	rt.traces.latencies = metrics.NewLatencies()
	c := &rt.Config // as it is when it is read
	rt.past = &past{config: c, log: log}
	rt.view = newView(c, log)
	rt.process = newProcess(c, rt.past, log)
	rt.builder = newBuilder(c, rt.view, rt.process.troubles, log)
	rt.server = server{config: c, log: log, view: rt.view, process: rt.process, past: rt.past, traces: &rt.traces,
		archive: rt.Archive, latest: LatestCalibrators{rt}}
	return rt
}

// BackupPlace returns where a configuration keeps state and history, in absolute paths: they are printed for use in
// other directories.
func BackupPlace(c config.Config) backup.Place {
	for _, path := range []*string{&c.Checkpoints.Dir, &c.Join.Dir, &c.History.Path} {
		if to, err := filepath.Abs(*path); err == nil && *path != "" {
			*path = to
		}
	}
	return backup.Place{Group: c.Group, State: c.Checkpoints.Dir, Skip: workDir(&c), History: HistoryFile(&c)}
}

// Hostname names this machine in records; "unknown" where the system has no name for it.
func Hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return h
}
