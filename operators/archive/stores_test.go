package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
)

const second = batchtest.Second

var quiet = slog.New(slog.DiscardHandler)

var errKilled = errors.New("killed")

// randomSource hands out two lanes in an order, and with idle inputs, that no other one has, until it is killed.
type randomSource struct {
	r    *rand.Rand
	in   lanes
	next [2]int64
	left int // events until it is killed; -1 = it goes on to the end
	end  int // idle events after the last record
}

func (s *randomSource) Next(context.Context) (pipeline.Record, error) {
	if s.left == 0 {
		return pipeline.Record{}, errKilled
	}
	s.left--
	left := [2]int{len(s.in[0]) - int(s.next[0]), len(s.in[1]) - int(s.next[1])}
	if left[0]+left[1] == 0 {
		if s.end == 2 {
			return pipeline.Record{}, io.EOF
		}
		s.end++
		return pipeline.Record{Input: pipeline.Input(s.end - 1), Idle: true}, nil
	}
	if s.r.IntN(6) == 0 {
		return pipeline.Record{Input: pipeline.Input(s.r.IntN(2)), Idle: true}, nil
	}
	l := anyOrder(s.r, left)
	s.next[l]++
	return s.in[l][s.next[l]-1], nil
}

func (s *randomSource) Commit(context.Context, map[pipeline.Input]int64) error { return nil }
func (s *randomSource) CaughtUp() bool                                         { return false }
func (s *randomSource) Close() error                                           { return nil }

// paneLog is a sink that keeps the pane messages.
type paneLog struct{ values [][]byte }

func (p *paneLog) Write(_ context.Context, ms []pipeline.Message) error {
	for _, m := range ms {
		if m.Stream == pipeline.StreamPanes {
			p.values = append(p.values, m.Value)
		}
	}
	return nil
}

func (p *paneLog) Close() error { return nil }

// frailStore keeps checkpoints in memory, some of them damaged.
type frailStore struct {
	saved   []pipeline.Checkpoint // by number, from 1
	files   map[string][]byte
	damaged map[int]bool
	bare    bool // journals are damaged too
}

func (s *frailStore) Save(_ context.Context, _ string, number uint64, c pipeline.Checkpoint) error {
	if err := c.Prepared(); err != nil {
		return err
	}
	if number != uint64(len(s.saved)+1) {
		return pipeline.ErrFenced
	}
	for _, f := range c.Files {
		if s.files[f.Name] == nil {
			b, err := os.ReadFile(f.Path)
			if err != nil {
				return err
			}
			s.files[f.Name] = b
		}
	}
	s.saved = append(s.saved, c)
	return nil
}

func (s *frailStore) Holds(context.Context, string, uint64) error { return nil }

func (s *frailStore) Load(context.Context, string) (out []pipeline.Stored, err error) {
	cut := func(b []byte, damaged bool) func() ([]byte, error) {
		if damaged {
			b = b[:len(b)/2]
		}
		return func() ([]byte, error) { return b, nil }
	}
	for i, c := range slices.Backward(s.saved) {
		out = append(out, pipeline.Stored{Name: fmt.Sprint(i + 1), Number: uint64(i + 1),
			Read: cut(c.Data, s.damaged[i]), Journal: cut(c.Journal, s.bare),
			Fetch: func(name, path string) error { return os.WriteFile(path, s.files[name], 0o600) }})
	}
	return out, nil
}

// damage spoils the newest n checkpoints that are whole, as long as one is left.
func (s *frailStore) damage(n int) {
	for i := len(s.saved) - 1; i > 0 && n > 0; i-- {
		if !s.damaged[i] {
			s.damaged[i] = true
			n--
		}
	}
	if n > 0 && len(s.saved) > 0 {
		s.damaged[0] = false
	}
}

// lanes are the records of one shard by input, each in offset order.
type lanes [2][]pipeline.Record

// records yields the records of both lanes, the next one always from the lane that p picks.
func (in lanes) records(r *rand.Rand, p func(r *rand.Rand, left [2]int) int) iter.Seq[pipeline.Record] {
	return func(yield func(pipeline.Record) bool) {
		for next := [2]int{}; next[0] < len(in[0]) || next[1] < len(in[1]); {
			l := p(r, [2]int{len(in[0]) - next[0], len(in[1]) - next[1]})
			if !yield(in[l][next[l]]) {
				return
			}
			next[l]++
		}
	}
}

func anyOrder(r *rand.Rand, left [2]int) int {
	if r.IntN(left[0]+left[1]) < left[0] {
		return 0
	}
	return 1
}

// inTurn takes the topic of which more is left.
func inTurn(_ *rand.Rand, left [2]int) int {
	if left[0] >= left[1] && left[0] > 0 {
		return 0
	}
	return 1
}
