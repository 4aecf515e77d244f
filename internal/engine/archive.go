package engine

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

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
	return sinkarchive.New(sinkarchive.Config{Dir: c.Directory, MaxBytes: c.MaxBytes, MaxAge: int64(c.MaxAge),
		Log: rt.Log})
}

// archiveOptions is that of a shard's operator; nil where no archive is configured. Files of a replay have names of
// their own: they are cut elsewhere than the live run's.
func (rt *Engine) archiveOptions(shard int) *archive.Options {
	if rt.Archive == nil {
		return nil
	}
	c := &rt.Config.Archive
	group := rt.Config.Group
	if rt.replaying {
		group += "-replay"
	}
	return &archive.Options{Config: *c, Group: group, Shard: shard, Slices: rt.Config.Slices.Columns, Dir: rt.workDir(),
		Name: fmt.Sprintf("%s-archive-%05d", group, shard), Publish: rt.Archive.Publish, AtOnce: rt.replaying}
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
