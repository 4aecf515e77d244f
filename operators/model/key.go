package model

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/operators/model/alarm"
	"github.com/plumbline/plumbline/operators/model/refit"
	"github.com/plumbline/plumbline/operators/model/slice"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/slicing"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// version is the state of one model version. All slices share its calibrators.
type version struct {
	stage.Version
	keys          map[string]*keyState
	heavy         map[string]*slice.Counts // by slice column
	pendingSlices map[string]*inbox        // cells of slices that have no statistics of their own
	refit         *refit.State
	contest       contest // who may have K
	last          int64   // label pane of its last rows; minPane = none
	idle          int64   // label panes that passed since then while other versions had rows
	served        int64   // label pane of its last predictions; minPane = none
	unserved      int64   // label panes that passed since then while other versions had predictions
}

// keyState is the state of one (model, version, slice).
type keyState struct {
	inbox
	stage.Key
	atRest
	served   int64            // label pane of the last predictions of a slice with alerts; minPane = none
	unserved int64            // label panes that passed since then while others of the version had predictions
	states   []stage.KeyState // in the order of the table of stages; nil if a stage keeps nothing for the key
}

// key returns the key of a slice, and creates it if needed.
func (v *version) key(slice string, cfg *Config) *keyState {
	k := v.keys[slice]
	if k == nil {
		open := cfg.open
		if slice != "" {
			open = nil
		}
		k = &keyState{Key: stage.Key{Version: &v.Version, Slice: slice, K: v.K}, inbox: newInbox(open),
			served: minPane}
		k.begin(v, cfg)
		v.keys[slice] = k
	}
	return k
}

// begin gives the key what its stages keep and show.
func (k *keyState) begin(v *version, cfg *Config) {
	k.Snapshots = stage.Snapshots{}
	if column, value, _ := strings.Cut(k.Slice, "="); value == slicing.Other {
		k.Shows = append(k.Shows, func(s *record.Snapshot, _ *stage.Window) error {
			v.showPooled(column, s)
			return nil
		})
	}
	if k.Slice == "" {
		var online *record.Online // of all windows of a pane
		var of record.Time
		k.Shows = append(k.Shows, func(s *record.Snapshot, _ *stage.Window) error {
			if online == nil || of != s.At {
				online, of = v.refit.Online(), s.At
			}
			s.Online = online
			return nil
		})
	}
	k.states = make([]stage.KeyState, len(cfg.table))
	for i, e := range cfg.table {
		k.states[i] = e.NewKey(&k.Key)
	}
}

// put checks a cell and keeps it until its label pane is processed.
func (v *version) put(labelPane int64, c *pipeline.Cell, late bool, cfg *Config) (rows int64, err error) {
	cell, of, err := receive(c.Set)
	if err != nil {
		return 0, err
	}
	if err := sumconfig.Check(of, v.Shape); err != nil || !cfg.Slices.has(c.Slice) {
		return 0, err
	}
	return cell.rows(), v.inboxOf(c.Slice, cfg).put(labelPane, c.PredictionPane, cell, cell.late(late))
}

// open reports whether label panes without rows matter to the key.
func (k *keyState) open() bool {
	return k.isOpen || k.Recent.Open() ||
		slices.ContainsFunc(k.states, func(s stage.KeyState) bool { return s != nil && s.Open() })
}

// stepper processes label panes of one version.
type stepper struct {
	*fleet
	*version
}

// step processes one label pane of a version. First every key observes the pane, then the stages close it over all keys
// together. Decisions take effect at the end of the pane.
func (t *stepper) step(pane int64) error {
	v := t.version
	defer t.Trace.Stage("pane", tracing.Attr{Key: "plumbline.model", Value: v.Model},
		tracing.Attr{Key: "plumbline.version", Value: v.Name},
		tracing.Attr{Key: "plumbline.pane", Value: pipeline.Format(pane * t.cfg.Pane)})()
	if err := t.route(pane); err != nil {
		return err
	}
	if err := t.stepKeys(pane); err != nil {
		return err
	}
	if k := v.keys[""]; k != nil {
		return t.awake.rest(k, &t.cfg)
	}
	return nil
}

func (t *stepper) stepKeys(pane int64) error {
	v := t.version
	names := slices.Sorted(maps.Keys(v.keys))
	// "" sorts first, but the whole version comes last.
	if len(names) > 0 && names[0] == "" {
		names = append(names[1:], "")
	}
	v.Shadow = t.models[v.Model].heads.Shadowing(v.Name)
	observed := t.Trace.Stage("observe", tracing.Attr{Key: "plumbline.keys", Value: int64(len(names))})
	var in stage.Pane // of one key at a time: those of all keys would take more memory than their windows
	for _, name := range names {
		k := v.keys[name]
		var err error
		if in, err = k.take(pane, t.cfg.Pane); err == nil {
			err = t.stepKey(k, &in)
		}
		if err != nil {
			return fmt.Errorf("slice %q: %w", name, err)
		}
		runtime.Gosched() // shards that wait for the processor go first
	}
	if observed(); v.Shadow {
		return nil
	}
	if err := t.close(names, pane); err != nil {
		return err
	}
	if v.keys[""] == nil {
		return nil
	}
	defer t.Trace.Stage("refit")()
	var err error
	if in.Labelled > 0 || t.env.Maturity.On() { // the whole version was the last
		err = v.refit.Step(&in)
	} else {
		err = refit.StepEmpty(v.refit, &in)
	}
	if err != nil {
		return err
	}
	return v.refit.StepShift(&in)
}

func (t *stepper) stepKey(k *keyState, in *stage.Pane) error {
	k.wake(t.fleet)
	if k.IsNew() && k.Labelled+in.Labelled >= stage.NewRows {
		for _, grow := range k.Grown {
			if err := grow(); err != nil {
				return err
			}
		}
	}
	if k.Labelled == 0 {
		k.Began = in.End - t.env.Pane
	}
	k.Labelled += in.Labelled
	k.LateRows += in.Late
	var err error
	if in.Scored, err = t.score(k, in); err != nil {
		return err
	}
	if in.Counted, err = k.Recent.Add(in, t.env.Maturity, t.cfg.Bins, keepRows(&t.cfg)); err != nil {
		return err
	}
	if m := t.env.Maturity; m.On() && k.Slice == "" {
		m.Keep(&k.Key, in.Rows, in.Index, t.cfg.SampleRows)
	} else {
		k.Keep(in.Rows, t.cfg.sampleOf(&k.Key))
	}
	for _, a := range k.Alerts {
		a.Change = nil
	}
	for _, s := range k.states {
		if s == nil {
			continue
		}
		if err := s.Observe(in); err != nil {
			return err
		}
	}
	if k.Slice == "" {
		t.models[t.Model].heads.Observe(&t.Version, in)
	}
	return nil
}

// close closes a label pane of a version, stage by stage, and then settles its alerts.
func (t *stepper) close(names []string, pane int64) error {
	v := t.version
	c := &stage.Closing{Index: pane, End: (pane + 1) * t.cfg.Pane}
	keys := make([]*stage.Key, len(names))
	for i, name := range names {
		k := v.keys[name]
		keys[i] = &k.Key
		c.Keys = append(c.Keys, stage.Closed{Key: &k.Key})
	}
	for i, e := range t.cfg.table {
		for j, name := range names {
			c.Keys[j].State = v.keys[name].states[i]
		}
		end := t.Trace.Stage(e.name)
		err := e.Close(c)
		if end(); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return t.alert.Settle(keys, c.End)
}

// sampleOf returns how many sampled rows a key keeps. Refits read those of the whole version. Those of a slice serve
// only the estimates of its class shares.
func (c *Config) sampleOf(k *stage.Key) int {
	switch {
	case k.Slice == "":
		return c.SampleRows
	case k.Estimator == nil || !c.Unlabelled.ReadsRows(k.Slice):
		return 0
	}
	return min(c.SampleRows, c.SliceRows)
}

// keepRows returns how many labelled rows rules and alarms read from stage.Key.Recent.
func keepRows(cfg *Config) int64 {
	n := int64(0)
	for i := range cfg.Rules {
		n = max(n, cfg.Rules[i].Rows)
	}
	if cfg.Alarm != nil {
		n = max(n, alarm.Rows)
	}
	return n
}
