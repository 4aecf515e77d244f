package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/alert"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Config configures a model task; internal/engine makes it from the configuration file.
type Config struct {
	Pane       int64
	Turns      slicing.Turns // at which slices get their rows
	Acc        acc.Config    // of the shards; K is set for each version
	Bins       int
	ExtraBins  []int
	CDFNu      float64
	Resamples  int
	SampleRows int   // sampled rows kept of a version
	SliceRows  int   // and of a slice
	FinalAfter int64 // ns past its end after which a time window is final
	// Apart is how many panes the models of a shard wait for each other at most; 0: they share its clock.
	Apart int64
	// SilentAfter is the time in ns after which a version without predictions is silent, if others had some; 0 = never.
	SilentAfter int64
	// ForgetAfter is the time in ns after which a version without rows is forgotten, if others had some; 0 = never.
	ForgetAfter int64
	KeepBytes   int // of the versions of a model, above which silent ones are forgotten sooner; 0 = 256 MiB
	Windows     []window.Config
	Rules       []rule.Config
	Slices      SliceSpec
	Alarm       *alarm.Config // nil = none
	Matured     int64         // age in ns from which rows count in alarms, rules and refits; 0 = when their label comes
	Unlabelled  *drift.Config // nil = off
	Hold        time.Duration // how long an alert stays inhibited after its inhibitor is gone
	Refit       refit.Config
	MaxBytes    int            // largest size of an encoded calibrator; 0 = no limit
	Build       string         // the version of this build, for the records
	Classes     map[string]int // declared K by model
	MaxVersions int            // model versions with statistics at a time; 0 = no bound
	Trigger     finetune.TriggerConfig
	Heads       proving.Config
	Fits        refit.Pool // shared by all tasks of a process; nil = a pool of its own
	Unseen      bool       // nobody reads the snapshots: they are not made

	table []namedStage
	open  *openCells
}

// Task processes one partition of the panes topic. See the package documentation.
type Task struct {
	fleet
	partition int
	next      int64
	shards    shards
	out       []pipeline.Message
	dirty     bool
	backlog   int // bytes of pane messages taken for waiting models
	still     int // reports since something was new
	status    atomic.Pointer[pipeline.TaskStatus]
}

// minPane comes before every pane.
const minPane = math.MinInt64

// NewTask returns the task of one partition of the panes topic.
func NewTask(cfg Config, partition int, counts *pipeline.Counts, log *slog.Logger) *Task {
	t := &Task{
		fleet: fleet{cfg: cfg, models: map[string]*model{}, counts: counts, log: log,
			turns: turns{waiting: map[string]bool{}, behind: map[string]bool{}}},
		partition: partition,
		next:      -1,
		shards:    shards{reached: minPane, apart: cfg.Apart, counts: counts, log: log},
	}
	t.env = &stage.Env{
		Pane:          cfg.Pane,
		Maturity:      stage.Maturity{Pane: cfg.Pane},
		Acc:           cfg.Acc,
		Bins:          cfg.Bins,
		Resamples:     cfg.Resamples,
		FineSums:      slices.Max(append([]int{cfg.Bins}, cfg.ExtraBins...)) > acc.CoarseBins,
		SampleRows:    cfg.SampleRows,
		FinalAfter:    cfg.FinalAfter,
		DiagramWindow: diagramWindow(cfg.Windows),
		Unseen:        cfg.Unseen,
		Counts:        counts,
		Log:           log,
		Emit:          t.emit,
		Whole:         t.whole,
		Lost:          t.shards.losses.touching,
	}
	if cfg.Matured > 0 {
		// No label comes after FinalAfter, and until then it is known which calibrator served its row.
		t.env.Maturity.After = max(cfg.Pane, min(cfg.Matured, cfg.FinalAfter-cfg.Pane))
	}
	t.heads = finetune.New(t.env, cfg.Trigger, cfg.Heads)
	t.refits = refit.New(t.env, cfg.Refit, refit.Deps{Pool: cfg.Fits, MaxBytes: cfg.MaxBytes, Build: cfg.Build})
	t.cfg.open = &openCells{}
	t.cfg.table = stagesOf(&t.cfg, t.env)
	t.alert = alert.New(t.env, int64(cfg.Hold))
	return t
}

// diagramWindow returns the window that alerts link to: the first row window, because it covers the latest rows,
// otherwise the first window.
func diagramWindow(windows []window.Config) string {
	for _, w := range windows {
		if w.Kind == "rows" {
			return w.Name
		}
	}
	if len(windows) > 0 {
		return windows[0].Name
	}
	return ""
}

// Counts of a model task.
const (
	CountPanes     = "pane_messages"
	CountRepeats   = "pane_repeats"
	CountLostPanes = "pane_lost" // messages that a shard sent and that are no longer in the log
	CountBadPanes  = "pane_rejected"
)

// Name implements pipeline.Task.
func (t *Task) Name() string { return fmt.Sprintf("model-%05d", t.partition) }

// Next implements pipeline.Task.
func (t *Task) Next() map[pipeline.Input]int64 {
	return map[pipeline.Input]int64{pipeline.Panes: t.next}
}

// Take processes one message of the panes topic.
func (t *Task) Take(ctx context.Context, r pipeline.Record) error {
	if r.Idle || r.Offset < t.next {
		return nil
	}
	if err := resumeFits(t); err != nil {
		return err
	}
	if t.backlog > maxBacklog {
		if err := t.Settle(ctx); err != nil {
			return err
		}
	}
	t.dirty = true
	err := r.Unread.As(pipeline.ErrPane)
	if err == nil {
		err = t.take(r.Value)
	}
	if err != nil && !errors.Is(err, pipeline.ErrPane) {
		return fmt.Errorf("%s partition %d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	if err != nil {
		t.counts.Add(CountBadPanes, 1)
		t.log.Error("pane message cannot be used", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset,
			"err", err)
	}
	t.next = r.Offset + 1
	return nil
}

func (t *Task) take(value []byte) error {
	if pipeline.IsOrder(value) {
		c, err := pipeline.DecodeOrder(value)
		if err != nil {
			return err
		}
		return t.command(c)
	}
	m, err := pipeline.DecodePane(value)
	if err != nil {
		return err
	}
	if m.Length != t.cfg.Pane {
		return fmt.Errorf("%w: pane length %s, configured %s", pipeline.ErrPane, time.Duration(m.Length),
			time.Duration(t.cfg.Pane))
	}
	if !t.shards.hear(m) {
		return nil
	}
	if m.Loss != nil {
		if err := t.shards.losses.take(t, m.Loss); err != nil {
			return err
		}
	}
	if !m.Punctuation {
		if t.turns.waiting[m.Model] {
			t.backlog += len(value)
		}
		return t.increment(m)
	}
	if !t.shards.current(m) {
		return nil
	}
	t.shards.close(m)
	return t.process()
}

// increment keeps cells until their label pane is processed. Late cells join the next pane.
func (t *Task) increment(m *pipeline.PaneMessage) error {
	md := t.models[m.Model]
	if md == nil {
		md = t.newModel(m.Model)
		md.next = m.LabelPane
		t.models[m.Model] = md
		if err := tellLoss(t, t.shards.losses.own(), m.Model); err != nil {
			return err
		}
	}
	pane := m.LabelPane
	late := m.Late || pane < t.shards.barrierOf(md)
	switch {
	case late && md.fitting():
		// This is the pane that they would join if the model did not wait for a fit.
		pane = max(pane, md.next, md.reached)
	case late:
		pane = max(pane, md.next)
	default:
		// Until the first pane is processed, another shard may still begin this model with an earlier pane.
		md.next = min(md.next, pane)
	}
	t.Trace.Hold(tracing.Pane{Model: m.Model, Index: pane})
	for i := range m.Cells {
		c := &m.Cells[i]
		ok, err := t.admits(md, c.Version, t.shards.reached)
		if err != nil {
			return err
		}
		var rows int64
		if ok {
			rows, err = t.put(md, pane, c, late)
		} else {
			err = refuse(t.counts, c)
		}
		if err != nil {
			return fmt.Errorf("%w: %s version %q: %w", pipeline.ErrPane, m.Model, c.Version, err)
		}
		if ok && late && !m.Late && c.Slice == "" {
			countLate(t.counts, m, c.Version, rows)
		}
	}
	if len(md.versions) == 0 {
		t.remove(md)
	} else {
		t.shards.know(m.Shard, m.Model)
	}
	return nil
}

// countLate counts rows that are late here and were not in their shard: it was idle, and the others went on. Scores of
// shadow heads are no rows.
func countLate(counts *pipeline.Counts, m *pipeline.PaneMessage, version string, rows int64) {
	if _, _, shadow := record.BaseVersion(version); shadow {
		return
	}
	counts.Add(pipeline.CountLate, rows)
	counts.AddModels(pipeline.CountLateByModel, map[arrowio.ModelKey]int64{{Model: m.Model, Version: version}: rows})
}

// process processes every model's label panes up to the barrier.
func (t *Task) process() error {
	for name, m := range sorted(t.models) {
		if m.reached = t.shards.barrierOf(m); t.turns.behind[name] {
			continue
		}
		if err := t.advance(m, m.reached); err != nil {
			return err
		}
	}
	return nil
}

// advance processes one model's label panes up to the barrier, or up to a pane for which a fit is due that has not
// ended. After some panes it leaves the rest for later turns, so that other models go on.
func (t *Task) advance(m *model, barrier int64) error {
	t.turns.leave(m.name)
	for steps := 0; m.next < barrier; steps++ {
		pane := min(m.nextBusy(barrier, &t.cfg), barrier)
		if err := t.obey(m, pane); err != nil {
			return err
		}
		if pane == barrier {
			m.next = barrier
			break
		}
		if awaits := m.awaits(pane); awaits || steps == panesOfTurn {
			t.turns.wait(m.name, !awaits)
			return nil
		}
		if err := t.stepModel(m, pane); err != nil {
			return err
		}
		m.next = pane + 1
	}
	return t.obey(m, m.next)
}

// emit publishes one output of a key. It also chains the output into the key's ledger, which is part of the state hash.
func (t *Task) emit(k *stage.Key, m pipeline.Message) {
	if k != nil {
		k.Chain(m)
	}
	m.Partition = -1
	pipeline.CarryTrace(t.Trace, &m)
	t.out, t.dirty = append(t.out, m), true
}

// Outputs returns the decided outputs and clears them. It is for use without a runner, which would write them.
func (t *Task) Outputs() []pipeline.Message {
	out := t.out
	t.out = nil
	return out
}
