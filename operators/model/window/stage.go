package window

import "github.com/plumbline/plumbline/operators/model/stage"

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
	env  *stage.Env
	cfg  Settings
	runs map[*window]*windowRuns
}

// New returns the stage; env is that of the model task.
func New(env *stage.Env, cfg Settings) *Stage { return &Stage{env, cfg, map[*window]*windowRuns{}} }

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
	return s
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

// Open implements stage.KeyState. A time window that has rows becomes final even if no further rows come.
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
