package worldtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/plumbline/plumbline/pipeline"
)

// ErrKilled is where a MortalSource ends early.
var ErrKilled = errors.New("killed")

// MortalSource yields two lanes in a random order and with random idle inputs, until it is killed.
type MortalSource struct {
	Rand  *rand.Rand
	Lanes Lanes
	// At is the offset of the next record of each lane.
	At [2]int64
	// Left is how many events are left until it is killed; -1 = never.
	Left int

	end int // idle events after the last record
}

// Next implements pipeline.Source.
func (s *MortalSource) Next(context.Context) (pipeline.Record, error) {
	if s.Left == 0 {
		return pipeline.Record{}, ErrKilled
	}
	s.Left--
	left := [2]int{len(s.Lanes[0]) - int(s.At[0]), len(s.Lanes[1]) - int(s.At[1])}
	if left[0]+left[1] == 0 {
		if s.end == 2 {
			return pipeline.Record{}, io.EOF
		}
		s.end++
		return pipeline.Record{Input: pipeline.Input(s.end - 1), Idle: true}, nil
	}
	if s.Rand.IntN(6) == 0 {
		return pipeline.Record{Input: pipeline.Input(s.Rand.IntN(2)), Idle: true}, nil
	}
	l := AnyOrder(s.Rand, left)
	s.At[l]++
	return s.Lanes[l][s.At[l]-1], nil
}

// Commit implements pipeline.Source.
func (s *MortalSource) Commit(context.Context, map[pipeline.Input]int64) error { return nil }

// CaughtUp implements pipeline.Source.
func (s *MortalSource) CaughtUp() bool { return false }

// Close implements pipeline.Source.
func (s *MortalSource) Close() error { return nil }

// PaneLog is a sink that keeps the pane messages.
type PaneLog struct{ Values [][]byte }

// Write implements pipeline.Sink.
func (p *PaneLog) Write(_ context.Context, ms []pipeline.Message) error {
	for _, m := range ms {
		if m.Stream == pipeline.StreamPanes {
			p.Values = append(p.Values, m.Value)
		}
	}
	return nil
}

// Close implements pipeline.Sink.
func (p *PaneLog) Close() error { return nil }

// FrailStore keeps checkpoints in memory and can damage some of them. Its zero value is empty.
type FrailStore struct {
	Saved []pipeline.Checkpoint // by number, starting at 1
	// Bare damages journals too.
	Bare bool

	files   map[string][]byte
	damaged map[int]bool
}

// Save implements pipeline.CheckpointStore.
func (s *FrailStore) Save(_ context.Context, _ string, number uint64, c pipeline.Checkpoint) error {
	if err := c.Prepared(); err != nil {
		return err
	}
	if number != uint64(len(s.Saved)+1) {
		return pipeline.ErrFenced
	}
	if s.files == nil {
		s.files = map[string][]byte{}
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
	c.Data = bytes.Clone(c.Data)
	s.Saved = append(s.Saved, c)
	return nil
}

// Lost implements pipeline.CheckpointStore.
func (s *FrailStore) Lost(string) bool { return false }

// Holds implements pipeline.CheckpointStore.
func (s *FrailStore) Holds(context.Context, string, uint64) error { return nil }

// Load implements pipeline.CheckpointStore.
func (s *FrailStore) Load(context.Context, string) (out []pipeline.Stored, err error) {
	cut := func(b []byte, damaged bool) func() ([]byte, error) {
		if damaged {
			b = b[:len(b)/2]
		}
		return func() ([]byte, error) { return b, nil }
	}
	for i, c := range slices.Backward(s.Saved) {
		out = append(out, pipeline.Stored{Name: fmt.Sprint(i + 1), Number: uint64(i + 1),
			Read: cut(c.Data, s.damaged[i]), Journal: cut(c.Journal, s.Bare),
			Fetch: s.Fetch})
	}
	return out, nil
}

// Fetch writes a saved file to a path.
func (s *FrailStore) Fetch(name, path string) error { return os.WriteFile(path, s.files[name], 0o600) }

// Damage damages the newest n intact checkpoints, but leaves one.
func (s *FrailStore) Damage(n int) {
	if s.damaged == nil {
		s.damaged = map[int]bool{}
	}
	for i := len(s.Saved) - 1; i > 0 && n > 0; i-- {
		if !s.damaged[i] {
			s.damaged[i] = true
			n--
		}
	}
	if n > 0 && len(s.Saved) > 0 {
		s.damaged[0] = false
	}
}
