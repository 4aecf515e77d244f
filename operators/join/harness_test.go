package join

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators/model"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

const second = batchtest.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// setup is the part of the configuration that tests vary; the wiring is that of cmd/plumbline.
type setup struct {
	inputs   int
	lateness int64
	join     Options
	model    model.Config
	slices   []string
	maxKeys  int
}

func defaultSetup() setup {
	return setup{inputs: 2, lateness: 0, maxKeys: 100,
		join: Options{Config: Config{Wait: 120 * time.Second, MaxRows: 1 << 20}},
		model: model.Config{Pane: 10 * second, Acc: worldtest.Accumulators(),
			Bins: 15, ExtraBins: []int{10}, CDFNu: .1, Resamples: 20,
			SampleRows: 4096, SliceRows: 4096, FinalAfter: 120 * second,
			Windows: worldtest.Windows(), Rules: worldtest.Rules(), Refit: worldtest.Refits()}}
}

func (s *setup) shard(id, of int) *pipeline.Shard {
	counts := pipeline.NewCounts()
	h := host(counts)
	h.Outbox = pipeline.NewOutbox(id, of, s.model.Pane, 1)
	join := s.join
	join.Slices, join.Name = s.slices, fmt.Sprintf("shard-%d", id)
	stages := []pipeline.Stage{validate.New(validate.Config{NeedID: s.inputs == 2}, h).Stage(), New(join, h).Stage(),
		stats.New(stats.Options{Acc: s.model.Acc, Pane: s.model.Pane, MaxKeys: s.maxKeys}, h).Stage()}
	return pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: s.inputs, PaneLength: s.model.Pane,
		Watermark: pipeline.NewWatermark(s.inputs, s.lateness),
		Decoder:   arrowio.NewDecoder(arrowio.Options{Slices: s.slices}), Stages: stages, Host: h})
}

// host lends an operator what it asks for beside panes.
func host(counts *pipeline.Counts) pipeline.Host {
	return pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts, Log: quiet}
}

func (s *setup) task() *model.Task {
	return model.NewTask(s.model, 0, pipeline.NewCounts(), quiet)
}

// world is a worldtest.World of a setup, which tests may change while it runs.
type world struct {
	*worldtest.World[*model.Task]
	setup setup
}

func newWorld(t testing.TB, s setup, in []worldtest.Lanes, seed uint64) *world {
	if s.model.Fits == nil {
		s.model.Fits = refit.NewPool(1)
	}
	w := &world{setup: s}
	w.World = worldtest.New(t, worldtest.Parts[*model.Task]{Inputs: s.inputs, Fits: s.model.Fits,
		NewShard: func(id, of int) *pipeline.Shard { return w.setup.shard(id, of) },
		NewTask:  func() *model.Task { return w.setup.task() }}, in, seed)
	return w
}

func (w *world) run(p worldtest.Pick) *world {
	w.T.Helper()
	w.Run(p)
	return w
}

func (w *world) compare(want *world) {
	w.T.Helper()
	w.Compare(want.World)
}
