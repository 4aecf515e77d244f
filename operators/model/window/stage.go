package window

import (
	"errors"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// Settings are the windows of a task and the details of their snapshots.
type Settings struct {
	Windows   []Config
	ExtraBins []int   // numbers of bins of further ECEs
	CDFNu     float64 // parameter ν of the binned CDF
}

// CountDroppedOld counts labelled rows that came after their time window was final.
const CountDroppedOld = "rows_after_final"

// Stage keeps the windows of all keys of a task.
type Stage struct {
	env *stage.Env
	cfg Settings
}

// New returns the stage; env is that of the model task.
func New(env *stage.Env, cfg Settings) *Stage { return &Stage{env, cfg} }

// State holds the windows of one key.
type State struct {
	stage   *Stage
	key     *stage.Key
	windows []*window
	packed  []byte // of the windows, at rest; windows is nil then
	open    bool   // at rest, what Open returns
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	s := &State{stage: t, key: k}
	s.begin()
	return s
}

// begin makes the windows, without rows.
func (s *State) begin() {
	for _, c := range s.stage.cfg.Windows {
		s.windows = append(s.windows, newWindow(c))
	}
}

// Observe implements stage.KeyState. It adds a label pane to the windows and publishes those that are due.
func (s *State) Observe(in *stage.Pane) error {
	s.wake()
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
func (t *Stage) Close(c *stage.Closing) error {
	for _, k := range c.Keys {
		if s, ok := k.State.(*State); ok {
			s.rest()
		}
	}
	return nil
}

var packer stage.Packer

// restBytes is up to what size windows are packed: a key without labels stays new, and may have many rows.
const restBytes = 64 << 10

// rest packs the windows of a key that is new until they are needed.
func (s *State) rest() {
	if !s.key.IsNew() || s.packed != nil {
		return
	}
	size := 0
	for _, w := range s.windows {
		size += w.bytes()
	}
	if size > restBytes {
		return
	}
	b, err := s.AppendState(nil)
	if err != nil {
		panic("window: " + err.Error()) // memory takes everything
	}
	s.open = s.Open()
	s.packed, s.windows = packer.Pack(b), nil
}

// wake brings the windows back.
func (s *State) wake() {
	if s.packed == nil {
		return
	}
	r := binenc.NewReader(packer.Unpack(s.packed))
	s.packed = nil
	s.begin()
	if err := errors.Join(s.restore(&r, nil), r.Close()); err != nil {
		panic("window: " + err.Error()) // what this process has packed itself
	}
}

// Open implements stage.KeyState. A time window that has rows becomes final even if no further rows come.
func (s *State) Open() bool {
	if s.packed != nil {
		return s.open
	}
	for _, w := range s.windows {
		if w.open() {
			return true
		}
	}
	return false
}

// Merge implements stage.KeyState.
func (s *State) Merge(o stage.KeyState) error {
	from := o.(*State)
	s.wake()
	from.wake()
	for i, w := range s.windows {
		if err := w.absorb(s.stage, s.key.K, from.windows[i]); err != nil {
			return err
		}
	}
	return nil
}
