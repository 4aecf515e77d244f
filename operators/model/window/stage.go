package window

import (
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Settings are the windows of a task, and what their snapshots have.
type Settings struct {
	Windows   []Config
	ExtraBins []int   // further ECEs by number of bins
	CDFNu     float64 // ν of the binned CDF
}

// CountDroppedOld counts labelled rows whose window by time was final already.
const CountDroppedOld = "rows_after_final"

// Stage is the windows of all keys of a task.
type Stage struct {
	env *stage.Env
	cfg Settings
}

// New returns the stage.
func New(env *stage.Env, cfg Settings) *Stage { return &Stage{env, cfg} }

// State is the windows of one key.
type State struct {
	stage   *Stage
	key     *stage.Key
	windows []*window
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	s := &State{stage: t, key: k}
	for i := range t.cfg.Windows {
		s.windows = append(s.windows, newWindow(t.cfg.Windows[i]))
	}
	return s
}

// Observe implements stage.KeyState: it takes a label pane into the windows and publishes those that are due.
func (s *State) Observe(in *stage.Pane) error {
	for _, w := range s.windows {
		dropped, err := w.add(s.stage, s.key.K, in)
		if err != nil {
			return err
		}
		s.stage.env.Counts.Add(CountDroppedOld, dropped)
	}
	return s.stage.snapshots(s, in)
}

// Close implements stage.Stage.
func (t *Stage) Close(*stage.Closing) error { return nil }

// Open implements stage.KeyState: a window by time that has rows will be final without further rows.
func (s *State) Open() bool {
	for _, w := range s.windows {
		if w.open() {
			return true
		}
	}
	return false
}

// Merge implements stage.KeyState.
func (s *State) Merge(o stage.KeyState) error {
	for i, w := range s.windows {
		if err := w.absorb(s.stage, o.(*State).windows[i]); err != nil {
			return err
		}
	}
	return nil
}
