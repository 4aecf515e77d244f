package model

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
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

var errKilled = errors.New("killed")

// randomSource yields two lanes in a random order and with random idle inputs, until it is killed.
type randomSource struct {
	r    *rand.Rand
	in   worldtest.Lanes
	next [2]int64
	left int // events until it is killed; -1 = never
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
	l := worldtest.AnyOrder(s.r, left)
	s.next[l]++
	return s.in[l][s.next[l]-1], nil
}

func (s *randomSource) Commit(context.Context, map[pipeline.Input]int64) error { return nil }
func (s *randomSource) CaughtUp() bool                                         { return false }
func (s *randomSource) Close() error                                           { return nil }

// paneLog is a sink that stores the pane messages.
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

// contradictions counts messages whose number was used before: repeats with equal bytes, and different ones.
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

// frailStore keeps checkpoints in memory and can damage some of them.
type frailStore struct {
	saved   []pipeline.Checkpoint // by number, starting at 1
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

// damage damages the newest n intact checkpoints, but leaves one.
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
func fallback(t *testing.T, seed uint64, s setup, in worldtest.Lanes, journals bool) (*paneLog, map[string]int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	sink, store := &paneLog{}, &frailStore{files: map[string][]byte{}, damaged: map[int]bool{}, bare: !journals}
	rn := pipeline.Runner{Group: "g", Store: store, Sink: sink, Interval: 1 << 40, Log: quiet}
	var shard *pipeline.Shard
	for kills := 12; ; kills-- {
		err := pipeline.Run(t.Context(), rn, func() (pipeline.Registered, error) {
			shard = s.shard(0, 1)
			shard.CheckpointRows = 1 + r.Int64N(8)
			return shard.ForRun(), nil
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

// TestFallbackShowsTheSame: a shard whose newer checkpoints are damaged goes back to an older one. It takes the records
// in the recorded order, so every pane message has the same number and the same bytes again. The streams are sparse and
// have idle inputs, and some rows are late in one order and in time in another.
func TestFallbackShowsTheSame(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]batchtest.Options{
		"sparse": {N: 60, Step: 25 * second, MaxLag: 90 * second, Unlabelled: .1},
		"late":   {N: 300, MaxLag: 30 * second, Unlabelled: .1, Regions: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := batchtest.Rows(71, o)
			s := defaultSetup()
			s.slices = []string{"region"}
			s.join.Wait, s.model.FinalAfter = 24*time.Hour, 24*3600*second
			s.join.MemoryBytes, s.join.Dir, s.join.SegmentBytes = 1<<10, t.TempDir(), 512
			// Much later rows make the shard emit what came late.
			tail := batchtest.Rows(72, batchtest.Options{N: 20, Start: batchtest.Start + 5*3600*second,
				Step: 60 * second, Regions: 1})
			in := worldtest.Lanes{batchtest.Predictions(t, append(displaced(rows, 20), tail...), 3),
				batchtest.Labels(t, append(displaced(batchtest.ByLabelTime(rows), 20), batchtest.ByLabelTime(tail)...),
					3)}
			undisturbed := newWorld(t, s, []worldtest.Lanes{in}, 1).run(worldtest.AnyOrder)
			want, without, repeats, late := undisturbed.Counts(), 0, 0, int64(0)
			for seed := range uint64(testsize.Short(3, 8)) {
				log, counts := fallback(t, seed, s, in, true)
				n, different := log.contradictions(t)
				if different > 0 {
					t.Errorf("seed %d: %d of %d repeated messages differ from those shown before", seed, different, n)
				}
				repeats += n
				late += counts[pipeline.CountLate]
				for _, count := range []string{pipeline.CountPredictions, pipeline.CountLabels, pipeline.CountJoined,
					pipeline.CountLabelled} {
					if counts[count] != want[count] {
						t.Errorf("seed %d: %s = %d, want %d", seed, count, counts[count], want[count])
					}
				}
				if got := shown(t, &s, log); got != want[pipeline.CountLabelled] {
					t.Errorf("seed %d: the model task has %d labelled rows, want %d", seed, got,
						want[pipeline.CountLabelled])
				}
				log, _ = fallback(t, seed, s, in, false)
				_, different = log.contradictions(t)
				without += different
			}
			if repeats == 0 || late == 0 || without == 0 {
				t.Errorf("%d repeats, %d late rows, %d contradictions where the journals are gone: want some of each",
					repeats, late, without)
			}
		})
	}
}

// shown returns the number of labelled rows that a model task has read from a panes log.
func shown(t *testing.T, s *setup, log *paneLog) (n int64) {
	t.Helper()
	task := s.task()
	for i, v := range log.values {
		if err := task.Take(t.Context(), pipeline.Record{Input: pipeline.Panes, Topic: "panes", Offset: int64(i),
			Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := task.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counts := task.counts.All(); counts[CountLostPanes]+counts[CountBadPanes] > 0 {
		t.Errorf("counts of the model task: %v", counts)
	}
	for _, m := range task.models {
		for _, v := range m.versions {
			n += v.keys[""].Labelled
		}
	}
	return n
}
