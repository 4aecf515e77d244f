package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

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
	"github.com/plumbline/plumbline/pipeline"
)

// ModelConfig configures a model task.
type ModelConfig struct {
	Pane       int64
	Acc        acc.Config // as the shards'; K is set by model version
	Bins       int
	ExtraBins  []int
	CDFNu      float64
	Resamples  int
	SampleRows int   // kept by key
	FinalAfter int64 // a time window is final when the label panes are this far past its end, ns
	// ForgetAfter is how long a version must have had no rows, ns, while others had some, to be forgotten; 0 = never.
	ForgetAfter int64
	Windows     []window.Config
	Rules       []rule.Config
	Slices      SliceSpec
	Alarm       *alarm.Config // nil = none
	Unlabelled  *drift.Config // nil = nothing of predictions before their labels come
	Hold        time.Duration // how long an alert stays inhibited after its inhibitor is gone
	Refit       refit.Config
	MaxBytes    int    // of an encoded calibrator; 0 = no bound
	Build       string // the version of this build, for the records
	Trigger     finetune.TriggerConfig
	Heads       proving.Config
	Fits        refit.Pool // that all tasks of a process share; nil = one of its own

	table []namedStage
}

// ModelTask does everything that is per model. It reads one partition of the panes topic, a complete and ordered
// log, and decides on nothing else: no clock, no other input. So its outputs are a function of that log.
//
// A label pane is processed when every shard has closed it (Barrier), keys in a fixed order, so that neither the
// order of the shards' messages nor how far one punctuation jumps makes a difference.
type ModelTask struct {
	env       *stage.Env
	alert     *alert.Stage
	cfg       ModelConfig
	partition int
	next      int64
	shards    []progress
	reached   int64 // the furthest barrier so far
	models    map[string]*model
	heads     *finetune.Stage
	counts    *pipeline.Counts
	log       *slog.Logger
	out       []pipeline.Message
	dirty     bool
	refits    *refit.Stage
	waiting   map[string]bool // models that have come to a pane at which a fit is due that is not there
	backlog   int             // bytes of pane messages taken for models that wait
	status    atomic.Pointer[pipeline.TaskStatus]
}

// progress is what a shard has told: its last message, the first label pane it has not closed, and whether it has
// nothing more to read for now.
type progress struct {
	seq    uint64
	closed int64
	idle   bool
}

// minPane is before every pane.
const minPane = math.MinInt64

// model is the state of one model: its versions, and the first label pane not yet processed.
type model struct {
	name     string
	versions map[string]*version
	next     int64
	orders   refit.Orders
	heads    *finetune.Model
}

func (t *ModelTask) newModel(name string) *model {
	return &model{name: name, versions: map[string]*version{}, heads: t.heads.NewModel()}
}

// NewModelTask returns the task of one partition of the panes topic.
func NewModelTask(cfg ModelConfig, partition int, counts *pipeline.Counts, log *slog.Logger) *ModelTask {
	t := &ModelTask{cfg: cfg, partition: partition, next: -1, reached: minPane, models: map[string]*model{},
		counts: counts, log: log,
		waiting: map[string]bool{}}
	t.env = &stage.Env{Pane: cfg.Pane, Acc: cfg.Acc, Bins: cfg.Bins, Resamples: cfg.Resamples,
		FinalAfter: cfg.FinalAfter, DiagramWindow: diagramWindow(cfg.Windows),
		Counts: counts, Log: log, Emit: t.emit, Whole: t.whole}
	t.heads = finetune.New(t.env, cfg.Trigger, cfg.Heads)
	t.refits = refit.New(t.env, cfg.Refit, refit.Deps{Pool: cfg.Fits, MaxBytes: cfg.MaxBytes, Build: cfg.Build})
	t.cfg.table = stagesOf(&t.cfg, t.env)
	t.alert = alert.New(t.env, int64(cfg.Hold))
	return t
}

// diagramWindow is the window that alerts link to: the first by rows, which is of the latest rows, else the first.
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
	CountLostPanes = "pane_lost" // messages that a shard sent and that are not in the log any more
	CountBadPanes  = "pane_rejected"
)

// Name implements the runtime's task.
func (t *ModelTask) Name() string { return fmt.Sprintf("model-%05d", t.partition) }

// Next implements the runtime's task.
func (t *ModelTask) Next() map[pipeline.Input]int64 {
	return map[pipeline.Input]int64{pipeline.Panes: t.next}
}

// Take processes one message of the panes topic.
func (t *ModelTask) Take(ctx context.Context, r pipeline.Record) error {
	if r.Idle || r.Offset < t.next {
		return nil
	}
	if err := t.Resume(); err != nil {
		return err
	}
	if t.backlog > maxBacklog {
		if err := t.Settle(ctx); err != nil {
			return err
		}
	}
	t.dirty = true
	err := t.take(r.Value)
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

func (t *ModelTask) take(value []byte) error {
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
	if err := t.setShards(m.Of); err != nil {
		return err
	}
	p := &t.shards[m.Shard]
	if m.Seq <= p.seq {
		t.counts.Add(CountRepeats, 1)
		return nil
	}
	if lost := m.Seq - p.seq - 1; lost > 0 {
		// They are gone from the log: going on without them, loudly, is all that is left to do.
		t.counts.Add(CountLostPanes, int64(lost))
		t.log.Error("pane messages were lost: retention of the panes topic, or it was emptied", "shard", m.Shard,
			"last", p.seq, "next", m.Seq)
	}
	p.seq, p.idle = m.Seq, m.Punctuation && m.Idle
	t.counts.Add(CountPanes, 1)
	if m.Punctuation {
		p.closed = max(p.closed, m.Closed)
		t.reached = t.barrier()
		return t.process()
	}
	if t.waiting[m.Model] {
		t.backlog += len(value)
	}
	return t.increment(m)
}

func (t *ModelTask) setShards(of int) error {
	if len(t.shards) == 0 {
		t.shards = make([]progress, of)
		for i := range t.shards {
			t.shards[i].closed = minPane
		}
	}
	if of != len(t.shards) {
		return fmt.Errorf("%w: of %d shards, this state is of %d (partitions were added)", pipeline.ErrPane, of,
			len(t.shards))
	}
	return nil
}

// barrier is the first label pane that some shard has not closed. An idle shard has sent all that it has and holds
// back nobody: a partition without rows must not stop a model. Where all are idle, everything has come. The barrier
// never falls; what a shard that wakes up sends for a pane before it counts as late.
func (t *ModelTask) barrier() int64 {
	active, last, any := int64(math.MaxInt64), int64(minPane), false
	for _, p := range t.shards {
		last = max(last, p.closed)
		if !p.idle {
			active, any = min(active, p.closed), true
		}
	}
	if !any {
		active = last
	}
	return max(t.reached, active)
}

// increment puts cells aside until their label pane is processed; late ones join the next pane to come.
func (t *ModelTask) increment(m *pipeline.PaneMessage) error {
	md := t.models[m.Model]
	if md == nil {
		md = t.newModel(m.Model)
		md.next = m.LabelPane
		t.models[m.Model] = md
	}
	pane := m.LabelPane
	late := m.Late || pane < t.barrier()
	switch {
	case late && md.fitting():
		// Where its panes would be if it waited for no fit.
		pane = max(pane, md.next, t.reached)
	case late:
		pane = max(pane, md.next)
	default:
		// Another shard may begin this model later with an earlier pane, as long as none was processed.
		md.next = min(md.next, pane)
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		v, err := t.version(md, c.Version, c.K)
		if err != nil {
			return fmt.Errorf("%w: %s version %q: %w", pipeline.ErrPane, m.Model, c.Version, err)
		}
		if c.K != v.K {
			return fmt.Errorf("%w: %s version %q has K = %d, shard %d sends %d", pipeline.ErrPane, m.Model, c.Version,
				v.K, m.Shard, c.K)
		}
		if err := v.put(pane, c, late, &t.cfg); err != nil {
			return fmt.Errorf("%w: %s version %q: %w", pipeline.ErrPane, m.Model, c.Version, err)
		}
	}
	return nil
}

// version finds or makes a version; a K that no statistics can have is an error.
func (t *ModelTask) version(m *model, name string, k int) (*version, error) {
	if v := m.versions[name]; v != nil {
		return v, nil
	}
	shape := t.cfg.Acc
	shape.K = k
	empty, err := acc.New(shape)
	if err != nil {
		return nil, err
	}
	v := &version{Version: stage.Version{Model: m.name, Name: name, K: k, Shape: empty.Config()},
		keys: map[string]*keyState{}, heavy: map[string]*slice.Counts{}, pendingSlices: map[string]*inbox{},
		last: minPane}
	v.refit = t.refits.NewState(&v.Version)
	m.heads.Add(&v.Version)
	m.versions[name] = v
	return v, nil
}

// process walks every model's label panes up to the barrier.
func (t *ModelTask) process() error {
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		if err := t.advance(t.models[name], t.reached); err != nil {
			return err
		}
	}
	return nil
}

// advance walks one model's label panes up to the barrier, or to one at which a fit is due that is not there.
func (t *ModelTask) advance(m *model, barrier int64) error {
	delete(t.waiting, m.name)
	for m.next < barrier {
		pane := min(m.nextBusy(barrier), barrier)
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
		busy := m.seen(pane, max(1, pauseAtMost/t.cfg.Pane))
		for _, vn := range slices.Sorted(maps.Keys(m.versions)) {
			if err := (&stepper{t, m.versions[vn]}).step(pane); err != nil {
				return fmt.Errorf("model %s version %q label pane %s: %w", m.name, vn, pipeline.Format(pane*t.cfg.Pane),
					err)
			}
		}
		if err := m.heads.Close(pane); err != nil {
			return fmt.Errorf("model %s label pane %s: %w", m.name, pipeline.Format(pane*t.cfg.Pane), err)
		}
		if busy {
			if err := m.forgetIdle(t, pane); err != nil {
				return fmt.Errorf("model %s label pane %s: %w", m.name, pipeline.Format(pane*t.cfg.Pane), err)
			}
		}
		m.next = pane + 1
	}
	return t.obey(m, m.next)
}

// nextBusy is the next pane at which anything can happen: m.next while a window is open or cells wait for it,
// else that of the first waiting cells, so that a gap of years costs nothing.
func (m *model) nextBusy(barrier int64) int64 {
	first := barrier
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
	}
	return max(first, m.next)
}

// emit publishes one output of a key and chains it into the key's ledger, which is part of the state hash.
func (t *ModelTask) emit(k *stage.Key, m pipeline.Message) {
	if k != nil {
		h := sha256.New()
		h.Write(k.Ledger[:])
		h.Write([]byte(m.Stream))
		h.Write(m.Key)
		h.Write(m.Value)
		h.Sum(k.Ledger[:0])
	}
	m.Partition = -1
	t.out = append(t.out, m)
}

// whole returns the key of all rows of a version.
func (t *ModelTask) whole(v *stage.Version) *stage.Key {
	return &t.models[v.Model].versions[v.Name].key("", &t.cfg).Key
}

// Outputs returns and clears what has been decided: for in-process use, where no Runner writes it.
func (t *ModelTask) Outputs() []pipeline.Message {
	out := t.out
	t.out = nil
	return out
}

// Hash is the state hash by model: SHA-256 over the ledgers and states of its keys. Panes partitions, shards,
// batch sizes and crashes leave no trace in it.
func (t *ModelTask) Hash() (map[string]string, error) {
	out := map[string]string{}
	for name, m := range t.models {
		b, err := m.append(nil, t.cfg.table)
		if err != nil {
			return nil, err
		}
		if b, err = t.models[name].appendHeavy(b); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		out[name] = hex.EncodeToString(sum[:])
	}
	return out, nil
}
