package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/model/alert"
	"github.com/plumbline/plumbline/operators/model/finetune"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// fleet is the models of a partition, and the stages that decide about them. It keeps cells and processes label panes.
// It does not know the log: the task says which pane is next, and has the outputs.
type fleet struct {
	env    *stage.Env
	cfg    Config
	models map[string]*model
	turns  turns
	alert  *alert.Stage
	heads  *finetune.Stage
	refits *refit.Stage
	counts *pipeline.Counts
	log    *slog.Logger
	awake  awake
	// Trace is told where the task's records are; nil = nobody.
	Trace *tracing.Lane
}

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

func (f *fleet) newModel(name string) *model {
	return &model{name: name, versions: map[string]*version{}, reached: minPane, heads: f.heads.NewModel()}
}

// versionOf returns a version, and creates it if needed. It returns an error if no statistics can have K = k.
func (f *fleet) versionOf(m *model, name string, k int) (*version, error) {
	if v := m.versions[name]; v != nil {
		return v, nil
	}
	shape, err := shapeOf(f.cfg.Acc, k)
	if err != nil {
		return nil, err
	}
	v := &version{Version: stage.Version{Model: m.name, Name: name, K: k, Shape: shape},
		keys: map[string]*keyState{}, heavy: map[string]*slice.Counts{}, pendingSlices: map[string]*inbox{},
		last: minPane, served: minPane}
	v.refit = f.refits.NewState(&v.Version)
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

// whole returns the key of all rows of a version.
func (f *fleet) whole(v *stage.Version) *stage.Key {
	k := f.models[v.Model].versions[v.Name].key("", &f.cfg)
	k.wake(f)
	return &k.Key
}

// remove forgets a model of which nothing is left.
func (f *fleet) remove(m *model) {
	delete(f.models, m.name)
	f.turns.leave(m.name)
}

// stepModel processes a label pane of a model.
func (f *fleet) stepModel(m *model, pane int64) error {
	if err := f.reconcileAll(m, pane); err != nil {
		return err
	}
	busy := m.seen(pane, max(1, pauseOfAll/f.cfg.Pane))
	m.hush(pane, &f.cfg)
	if err := f.stepAll(m, pane); err != nil {
		return err
	}
	err := m.heads.Close(pane)
	if err == nil && busy {
		err = m.forgetIdle(f, pane)
	}
	if err != nil {
		return fmt.Errorf("model %s label pane %s: %w", m.name, pipeline.Format(pane*f.cfg.Pane), err)
	}
	return nil
}

// stepAll processes a label pane of all versions of a model.
func (f *fleet) stepAll(m *model, pane int64) error {
	defer f.Trace.Enter(tracing.Pane{Model: m.name, Index: pane})()
	for vn, v := range sorted(m.versions) {
		if err := (&stepper{f, v}).step(pane); err != nil {
			at := pipeline.Format(pane * f.cfg.Pane)
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
		if v.open() {
			return m.next
		}
		first = v.firstPending(first)
		if v.refit.Fitting() {
			first = min(first, v.refit.Due())
		}
		first = v.contest.nextPane(m.next, first)
	}
	return max(first, m.next)
}

// Hash returns the state hash of each model: SHA-256 over the ledgers and states of its keys. It does not depend on
// panes partitions, shards, batch sizes and crashes.
func (f *fleet) Hash() (map[string]string, error) {
	out := map[string]string{}
	for name, m := range f.models {
		b, err := m.append(nil, f.cfg.table, false)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(f.sliceSection().appendModel(b, m))
		out[name] = hex.EncodeToString(sum[:])
	}
	return out, nil
}
