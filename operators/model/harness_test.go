package model

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/operators"
	"github.com/plumbline/plumbline/operators/apply"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

const second = batchtest.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// setup is the part of the configuration that tests vary. Shards are wired by operators.Chain, as in internal/engine.
type setup struct {
	inputs   int
	lateness int64
	join     join.Options
	model    Config
	slices   []string
	maxKeys  int
	apply    *apply.Published
	heads    *shadow.Heads // nil = no shadows
	classes  string
	cells    int   // stats.Options.CellBytes
	apart    int64 // how long models of a shard wait for each other, ns
}

func defaultSetup() setup {
	return setup{inputs: 2, lateness: 0, maxKeys: 100, apart: 300 * second,
		join: join.Options{Config: join.Config{Wait: 120 * time.Second, MaxRows: 1 << 20}},
		model: Config{Pane: 10 * second, Acc: worldtest.Accumulators(),
			Bins: 15, ExtraBins: []int{10}, CDFNu: .1, Resamples: 20,
			SampleRows: 4096, SliceRows: 512, FinalAfter: 120 * second,
			Windows: worldtest.Windows(), Rules: worldtest.Rules(), Refit: worldtest.Refits()}}
}

func (s *setup) shard(id, of int) *pipeline.Shard {
	counts := pipeline.NewCounts()
	clock := pipeline.NewWatermark(s.inputs, s.lateness)
	clock.Tolerance, clock.After = s.apart, max(int64(s.model.Turns), 1)-1
	h := pipeline.Host{Out: pipeline.NewOut(counts), Outbox: pipeline.NewOutbox(id, of, s.model.Pane, 1),
		Counts: counts, Clocks: clock.Clocks, Log: quiet}
	waiting := s.join
	waiting.Slices, waiting.Name = s.slices, fmt.Sprintf("shard-%d", id)
	c := operators.Config{Validate: &validate.Config{NeedID: s.inputs == 2}, Join: &waiting,
		Stats: &stats.Options{Acc: s.model.Acc, Pane: s.model.Pane, MaxKeys: s.maxKeys,
			Turns: s.model.Turns, Classes: s.classes, CellBytes: s.cells}}
	if s.apply != nil {
		c.Apply = &apply.Options{Published: s.apply}
	}
	if s.heads != nil {
		c.Shadow = &shadow.Options{Config: proving.Config{MemoryBytes: 1 << 20}, Pane: s.model.Pane,
			Wait: int64(s.join.Wait), Heads: s.heads}
	}
	return pipeline.NewShard(pipeline.ShardSpec{ID: id, Inputs: s.inputs, PaneLength: s.model.Pane,
		Watermark: clock, Decoder: arrowio.NewDecoder(arrowio.Options{Slices: s.slices}),
		Stages: operators.Chain(c, h), Host: h})
}

func (s *setup) task() *Task {
	cfg := s.model
	cfg.Apart = (s.apart + cfg.Pane - 1) / cfg.Pane
	if cfg.Alarm != nil {
		cfg.Matured = int64(cfg.Alarm.Matured)
	}
	return NewTask(cfg, 0, pipeline.NewCounts(), quiet)
}

// world is a worldtest.World of a setup, which tests may change while it runs.
type world struct {
	*worldtest.World[*Task]
	setup setup
}

func newWorld(t testing.TB, s setup, in []worldtest.Lanes, seed uint64) *world {
	if s.model.Fits == nil {
		s.model.Fits = refit.NewPool(1)
	}
	w := &world{setup: s}
	w.World = worldtest.New(t, worldtest.Parts[*Task]{Inputs: s.inputs, Fits: s.model.Fits,
		NewShard: func(id, of int) *pipeline.Shard { return w.setup.shard(id, of) },
		NewTask:  func() *Task { return w.setup.task() },
		Rarer:    testsize.Pick(2.0, 1)}, in, seed) // a checkpoint costs more than the rows between two
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
