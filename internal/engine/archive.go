package engine

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/operators/archive"
	sinkarchive "github.com/plumbline/plumbline/sinks/archive"
)

// openArchive is the archive of this process; nil where none is configured.
func (rt *Engine) openArchive() *sinkarchive.Archive {
	c := &rt.Config.Archive
	if c.Directory == "" {
		return nil
	}
	return sinkarchive.New(sinkarchive.Config{Dir: c.Directory, MaxBytes: c.MaxBytes, MaxAge: int64(c.MaxAge), Log: rt.Log})
}

// archiveConfig is that of a shard's operator; nil where no archive is configured. Files of a replay have names of their
// own: they are cut elsewhere than the live run's.
func (rt *Engine) archiveConfig(shard int) *archive.Config {
	if rt.Archive == nil {
		return nil
	}
	c := &rt.Config.Archive
	group := rt.Config.Group
	if rt.replaying {
		group += "-replay"
	}
	return &archive.Config{Group: group, Shard: shard, Half: c.Features == config.FeaturesHalf, Scores: c.Logits,
		Slices: rt.Config.Slices.Columns, RollRows: c.RollRows, RollBytes: c.RollBytes, RollTime: int64(c.RollTime),
		MemoryBytes: c.MemoryBytes, PendingBytes: c.PendingBytes, Drop: c.WhenFull == config.WhenFullDrop, Dir: rt.workDir(),
		Name: fmt.Sprintf("%s-archive-%05d", group, shard), Publish: rt.Archive.Publish, AtOnce: rt.replaying}
}

// featureBytes is how many bytes of each feature wait for the label.
func (rt *Engine) featureBytes() int {
	switch c := &rt.Config.Archive; {
	case c.Directory == "":
		return 0
	case c.Features == config.FeaturesHalf:
		return 2
	default:
		return 4
	}
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

// collectors are the metrics beside those of the tasks.
func (rt *Engine) collectors() []prometheus.Collector {
	out := []prometheus.Collector{runMetrics{rt}, notifyMetrics{&rt.notified}}
	if rt.Archive != nil {
		out = append(out, rt.Archive)
	}
	if rt.Past != nil {
		out = append(out, decisionlog.Metrics{Store: rt.Past})
	}
	return out
}
