package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/proving"

	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/alert"
	"github.com/plumbline/plumbline/operators/model/drift"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/rule"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/model/window"

	"github.com/plumbline/plumbline/calib/acc"
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
	env       *stage.Env
	alert     *alert.Stage
	cfg       Config
	partition int
	next      int64
	shards    shards
	models    map[string]*model
	heads     *finetune.Stage
	counts    *pipeline.Counts
	log       *slog.Logger
	out       []pipeline.Message
	dirty     bool
	refits    *refit.Stage
	waiting   map[string]bool // models at a pane for which a fit is due that has not ended, or behind
	behind    map[string]bool // models with more panes to process than others should wait for
	turn      string          // the model of these that had the last turn
	backlog   int             // bytes of pane messages taken for waiting models
	still     int             // reports since something was new
	status    atomic.Pointer[pipeline.TaskStatus]
	awake     awake
	// Trace is told where the task's records are; nil = nobody.
	Trace *tracing.Lane
}

// minPane comes before every pane.
const minPane = math.MinInt64

// model is the state of one model. next is its first label pane that is not yet processed, reached its furthest barrier
// so far.
type model struct {
	name     string
	versions map[string]*version
	next     int64
	reached  int64
	orders   refit.Orders
	heads    *finetune.Model
}

func (t *Task) newModel(name string) *model {
	return &model{name: name, versions: map[string]*version{}, reached: minPane, heads: t.heads.NewModel()}
}

// NewTask returns the task of one partition of the panes topic.
func NewTask(cfg Config, partition int, counts *pipeline.Counts, log *slog.Logger) *Task {
	t := &Task{
		cfg:       cfg,
		partition: partition,
		next:      -1,
		shards:    shards{reached: minPane, apart: cfg.Apart, counts: counts, log: log},
		models:    map[string]*model{},
		counts:    counts,
		log:       log,
		waiting:   map[string]bool{},
		behind:    map[string]bool{},
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
		if t.waiting[m.Model] {
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
		ok, err := admits(t, md, c.Version)
		if err != nil {
			return err
		}
		var rows int64
		if ok {
			rows, err = putCell(t, md, pane, c, late)
		} else {
			err = refuse(t, c)
		}
		if err != nil {
			return fmt.Errorf("%w: %s version %q: %w", pipeline.ErrPane, m.Model, c.Version, err)
		}
		if ok && late && !m.Late && c.Slice == "" {
			countLate(t, m, c.Version, rows)
		}
	}
	if len(md.versions) == 0 {
		remove(t, md)
	} else {
		t.shards.know(m.Shard, m.Model)
	}
	return nil
}

// countLate counts rows that are late here and were not in their shard: it was idle, and the others went on. Scores of
// shadow heads are no rows.
func countLate(t *Task, m *pipeline.PaneMessage, version string, rows int64) {
	if _, _, shadow := record.BaseVersion(version); shadow {
		return
	}
	t.counts.Add(pipeline.CountLate, rows)
	t.counts.AddModels(pipeline.CountLateByModel, map[arrowio.ModelKey]int64{{Model: m.Model, Version: version}: rows})
}

// versionOf returns a version, and creates it if needed. It returns an error if no statistics can have K = k.
func (t *Task) versionOf(m *model, name string, k int) (*version, error) {
	if v := m.versions[name]; v != nil {
		return v, nil
	}
	shape, err := shapeOf(t.cfg.Acc, k)
	if err != nil {
		return nil, err
	}
	v := &version{Version: stage.Version{Model: m.name, Name: name, K: k, Shape: shape},
		keys: map[string]*keyState{}, heavy: map[string]*slice.Counts{}, pendingSlices: map[string]*inbox{},
		last: minPane, served: minPane}
	v.refit = t.refits.NewState(&v.Version)
	m.heads.Add(&v.Version)
	m.versions[name] = v
	return v, nil
}

// shapeOf is the configuration of statistics with K = k.
func shapeOf(shape acc.Config, k int) (acc.Config, error) {
	shape.K = k
	empty, err := acc.New(shape)
	if err != nil {
		return shape, err
	}
	return empty.Settings(), nil
}

// process processes every model's label panes up to the barrier.
func (t *Task) process() error {
	for name, m := range sorted(t.models) {
		if m.reached = t.shards.barrierOf(m); t.behind[name] {
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
	delete(t.waiting, m.name)
	delete(t.behind, m.name)
	for steps := 0; m.next < barrier; steps++ {
		pane := min(m.nextBusy(barrier, &t.cfg), barrier)
		if err := t.obey(m, pane); err != nil {
			return err
		}
		if pane == barrier {
			m.next = barrier
			break
		}
		if t.awaits(m, pane) {
			t.waiting[m.name] = true
			return nil
		}
		if steps == panesOfTurn {
			t.waiting[m.name], t.behind[m.name] = true, true
			return nil
		}
		if err := stepModel(t, m, pane); err != nil {
			return err
		}
		m.next = pane + 1
	}
	return t.obey(m, m.next)
}

// stepModel processes a label pane of a model.
func stepModel(t *Task, m *model, pane int64) error {
	if err := reconcileAll(t, m, pane); err != nil {
		return err
	}
	busy := m.seen(pane, max(1, pauseOfAll/t.cfg.Pane))
	m.hush(pane, &t.cfg)
	if err := stepAll(t, m, pane); err != nil {
		return err
	}
	err := m.heads.Close(pane)
	if err == nil && busy {
		err = m.forgetIdle(t, pane)
	}
	if err != nil {
		return fmt.Errorf("model %s label pane %s: %w", m.name, pipeline.Format(pane*t.cfg.Pane), err)
	}
	return nil
}

// stepAll processes a label pane of all versions of a model.
func stepAll(t *Task, m *model, pane int64) error {
	defer t.Trace.Enter(tracing.Pane{Model: m.name, Index: pane})()
	for vn, v := range sorted(m.versions) {
		if err := (&stepper{t, v}).step(pane); err != nil {
			at := pipeline.Format(pane * t.cfg.Pane)
			return fmt.Errorf("model %s version %q label pane %s: %w", m.name, vn, at, err)
		}
	}
	return nil
}

// nextBusy returns the next pane at which anything can happen. While a window is open this is m.next; otherwise it is
// the first pane with pending cells, at which a fit is due or the model becomes silent. So a gap of years costs
// nothing.
func (m *model) nextBusy(barrier int64, cfg *Config) int64 {
	first := m.pauseEnds(barrier, cfg)
	for _, v := range m.versions {
		for _, k := range v.keys {
			if k.open() {
				return m.next
			}
			for pane := range k.pending {
				first = min(first, pane)
			}
		}
		for _, b := range v.pendingSlices {
			for pane := range b.pending {
				first = min(first, pane)
			}
		}
		if v.refit.Fitting() {
			first = min(first, v.refit.Due())
		}
		first = v.contest.nextPane(m.next, first)
	}
	return max(first, m.next)
}

// emit publishes one output of a key. It also chains the output into the key's ledger, which is part of the state hash.
func (t *Task) emit(k *stage.Key, m pipeline.Message) {
	if k != nil {
		k.Chain(m)
	}
	m.Partition = -1
	pipeline.CarryTrace(t.Trace, &m)
	t.out = append(t.out, m)
}

// whole returns the key of all rows of a version.
func (t *Task) whole(v *stage.Version) *stage.Key {
	k := t.models[v.Model].versions[v.Name].key("", &t.cfg)
	k.wake(t)
	return &k.Key
}

// Outputs returns the decided outputs and clears them. It is for use without a runner, which would write them.
func (t *Task) Outputs() []pipeline.Message {
	out := t.out
	t.out = nil
	return out
}

// Hash returns the state hash of each model: SHA-256 over the ledgers and states of its keys. It does not depend on
// panes partitions, shards, batch sizes and crashes.
func (t *Task) Hash() (map[string]string, error) {
	out := map[string]string{}
	for name, m := range t.models {
		b, err := m.append(nil, t.cfg.table, false)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(sliceSection(t).appendModel(b, m))
		out[name] = hex.EncodeToString(sum[:])
	}
	return out, nil
}
