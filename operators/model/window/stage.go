package window

import (
	"time"

	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/operators/slicing"
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
	env    *stage.Env
	cfg    Settings
	runs   map[*window]*windowRuns
	turns  slicing.Turns // at which slices are shown
	latest intervals
}

// showSlices is how often the latest snapshots of slices are published, at most. There may be thousands of slices, and
// a snapshot costs more than all else that a pane of one takes; their alarms and rules look at every pane.
const showSlices = int64(time.Minute)

// New returns the stage; env is that of the model task.
func New(env *stage.Env, cfg Settings) *Stage {
	turns := slicing.Turns((showSlices + env.Pane - 1) / env.Pane)
	return &Stage{env: env, cfg: cfg, runs: map[*window]*windowRuns{}, turns: turns}
}

// turn is when the latest snapshots of a key are published: at this pane or not, and after how long again, in ns.
type turn struct {
	now   bool
	every int64
}

// turnOf is that of a key at a pane. A model version is shown at every pane, slices take turns.
func (t *Stage) turnOf(k *stage.Key, in *stage.Pane) turn {
	if k.Slice == "" {
		return turn{true, t.env.Pane}
	}
	return turn{t.turns.Next(in.Index, slicing.TurnOf(k.Slice)) == in.Index, int64(t.turns) * t.env.Pane}
}

// State holds the windows of one key.
type State struct {
	stage   *Stage
	key     *stage.Key
	windows []*window
	ofRows  bool // the windows have no sums of labelled rows, but the rows of the key
}

// NewKey implements stage.Stage.
func (t *Stage) NewKey(k *stage.Key) stage.KeyState {
	s := &State{stage: t, key: k, ofRows: t.begins(k)}
	k.Grown = append(k.Grown, func() error { return s.sumRows(k.Sample) })
	for _, c := range t.cfg.Windows {
		s.windows = append(s.windows, newWindow(c))
	}
	k.Covered = s.covered
	return s
}

// covered implements stage.Key.Covered by the time window with the shortest slide.
func (s *State) covered(from, to int64) (c stage.Coverage, err error) {
	var finest *window
	for _, w := range s.windows {
		if w.spec.Kind == KindTime && (finest == nil || w.spec.Slide < finest.spec.Slide) {
			finest = w
		}
	}
	if finest == nil {
		return c, nil
	}
	sum, _, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return c, err
	}
	for _, b := range finest.buckets { // sums of whole numbers: in any order
		if b.end <= from || b.start > to {
			continue
		}
		if err := sum.Unpack(&b.raw); err != nil {
			return c, err
		}
		c.Labelled += b.labelled
	}
	set := sum.AsSet()
	c.Predictions, _ = set.SeenRows()
	c.Said = set.Classes
	return c, nil
}

// Observe implements stage.KeyState. It adds a label pane to the windows and publishes those that are due.
func (s *State) Observe(in *stage.Pane) error {
	if s.ofRows {
		if ok, err := s.keeps(in); err != nil {
			return err
		} else if !ok {
			if err := s.sumRows(s.key.Sample[:max(0, len(s.key.Sample)-len(in.Rows))]); err != nil {
				return err
			}
		}
	}
	for _, w := range s.windows {
		dropped, err := w.add(s, in)
		if err != nil {
			return err
		}
		s.stage.env.Counts.Add(CountDroppedOld, dropped)
	}
	return s.stage.snapshots(s, in)
}

// Close implements stage.Stage. Windows end with their time.
func (t *Stage) Close(*stage.Closing) error { return nil }

// Open implements stage.KeyState. A time window that has rows becomes final even if no further rows come, and what a
// slice's row window has is published.
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
	from := o.(*State)
	for i, w := range s.windows {
		if err := w.absorb(s.stage, s.key.K, from.windows[i]); err != nil {
			return err
		}
	}
	return nil
}
