package window

import (
	"errors"

	"github.com/plumbline/plumbline/calib/acc"
)

// A row window of small panes has about a hundred blocks, and is summed at every pane. Sums of runs of neighbouring
// blocks are kept for a few windows of a task. They are no part of the state, and no result depends on them.

const (
	// runBlocks is how many blocks a run has: near the root of their number, which leaves least to sum.
	runBlocks = 8
	// runWindows bounds the windows with runs of a task, so that its memory does not grow with its keys.
	runWindows = 16
	// runIdle is for how many panes a window has not been summed when another may take its place.
	runIdle = 8
)

// run is the sum of blocks that change no more.
type run struct {
	blocks [runBlocks]*bucket
	sum    bucket
}

// windowRuns are the runs of a window by their first block.
type windowRuns struct {
	runs map[*bucket]*run
	used int64 // the pane at which they were last used
}

// runsOf returns the runs among the parts of a window that is summed at the end of a pane, and makes those that are
// missing. The last block may still change, so it is in none.
func (s *State) runsOf(w *window, parts []*bucket, pane int64) (map[*bucket]*run, error) {
	if w.spec.Kind != KindRows || s.ofRows || len(parts) <= 2*runBlocks {
		return nil, nil
	}
	have := s.stage.admit(w, pane)
	if have == nil {
		return nil, nil
	}
	runs, first := map[*bucket]*run{}, 0
	for i := 0; i < len(parts)-1; {
		if r := have.runs[parts[i]]; r != nil && len(parts)-i >= runBlocks &&
			r.blocks == [runBlocks]*bucket(parts[i:]) {
			runs[parts[i]] = r
			i += runBlocks
			first = i
			continue
		}
		i++
		if i-first == runBlocks {
			r, err := s.newRun(parts[first:i])
			if err != nil {
				return nil, err
			}
			if r != nil {
				runs[parts[first]] = r
			}
			first = i
		}
	}
	have.runs = runs
	return runs, nil
}

// admit returns the runs of a window, or nil where too many others have some.
func (t *Stage) admit(w *window, pane int64) *windowRuns {
	if have := t.runs[w]; have != nil {
		have.used = pane
		return have
	}
	if len(t.runs) >= runWindows {
		for o, r := range t.runs {
			if r.used < pane-runIdle {
				delete(t.runs, o)
			}
		}
	}
	if len(t.runs) >= runWindows {
		return nil
	}
	have := &windowRuns{used: pane}
	t.runs[w] = have
	return have
}

// newRun returns the sum of blocks, or nil where they do not fit into one.
func (s *State) newRun(blocks []*bucket) (*run, error) {
	out := &run{blocks: [runBlocks]*bucket(blocks)}
	sums, _, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return nil, err
	}
	for _, of := range signals {
		err := sums.Pack(of(&out.sum), func(to *acc.Summary) error {
			for _, b := range blocks {
				if err := to.Unpack(of(b)); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, acc.ErrOverflow) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// signals are the sums of a bucket.
var signals = [2]func(*bucket) *acc.Packed{
	func(b *bucket) *acc.Packed { return &b.raw },
	func(b *bucket) *acc.Packed { return &b.cal },
}

// addParts adds one signal of the parts of a window to sums, by runs where there are some that fit.
func (t *Stage) addParts(to *acc.Summary, parts []*bucket, runs map[*bucket]*run,
	of func(*bucket) *acc.Packed) error {
	for i := 0; i < len(parts); {
		b := parts[i]
		if r := runs[b]; r != nil {
			err := to.Unpack(of(&r.sum))
			if err == nil {
				i += runBlocks
				continue
			}
			if !errors.Is(err, acc.ErrOverflow) {
				return err
			}
		}
		if err := t.env.Fitted(to.Unpack(of(b)), b.labelled); err != nil {
			return err
		}
		i++
	}
	return nil
}
