package operators

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
)

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

// contradictions counts the messages that have a number which another one had before.
func (p *paneLog) contradictions(t *testing.T) (repeats, different int) {
	t.Helper()
	first := map[uint64][]byte{}
	for _, v := range p.values {
		m, err := pipeline.DecodePane(v)
		if err != nil {
			t.Fatal(err)
		}
		if old, ok := first[m.Seq]; !ok {
			first[m.Seq] = v
		} else if repeats++; !bytes.Equal(old, v) {
			different++
		}
	}
	return repeats, different
}

// frailStore keeps checkpoints in memory, some of them damaged.
type frailStore struct {
	saved   []pipeline.Checkpoint // by number, from 1
	files   map[string][]byte
	damaged map[int]bool
	bare    bool // journals are damaged too
}

func (s *frailStore) Save(_ context.Context, _ string, number uint64, c pipeline.Checkpoint) error {
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
		out = append(out, pipeline.Stored{Name: fmt.Sprint(i + 1), Number: uint64(i + 1), Read: cut(c.Data, s.damaged[i]), Journal: cut(c.Journal, s.bare),
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

// fallback runs one shard to the end of a stream, kills it many times, and damages its newest checkpoints each time.
func fallback(t *testing.T, seed uint64, s setup, in lanes, journals bool) (*paneLog, map[string]int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	sink, store := &paneLog{}, &frailStore{files: map[string][]byte{}, damaged: map[int]bool{}, bare: !journals}
	rn := pipeline.Runner{Group: "g", Store: store, Sink: sink, Interval: 1 << 40, Log: quiet}
	var shard *pipeline.Shard
	for kills := 12; ; kills-- {
		err := pipeline.Run(t.Context(), rn, func() (pipeline.Registered, error) {
			shard = s.shard(0, 1)
			shard.CheckpointRows = 1 + r.Int64N(8)
			return shard.Registered(), nil
		}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
			src := &randomSource{r: r, in: in, next: [2]int64{max(next[0], 0), max(next[1], 0)}, left: -1}
			if kills > 0 {
				src.left = r.IntN(len(in[0]) / 2)
			}
			return pipeline.Opened{Source: src}, nil
		})
		if err == nil {
			return sink, shard.Counts.All()
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		store.damage(1 + r.IntN(2))
	}
}
