package model

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// contradictions counts messages whose number was used before: repeats with equal bytes, and different ones.
func contradictions(t *testing.T, p *worldtest.PaneLog) (repeats, different int) {
	t.Helper()
	first := map[uint64][]byte{}
	for _, v := range p.Values {
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

// fallback runs one shard to the end of a stream, kills it many times, and damages its newest checkpoints each time.
func fallback(t *testing.T, seed uint64, s setup, in worldtest.Lanes, journals bool) (*worldtest.PaneLog,
	map[string]int64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	sink, store := &worldtest.PaneLog{}, &worldtest.FrailStore{Bare: !journals}
	rn := pipeline.Runner{Group: "g", Store: store, Sink: sink, Interval: 1 << 40, Log: quiet}
	var shard *pipeline.Shard
	for kills := 12; ; kills-- {
		err := pipeline.Run(t.Context(), rn, func() (pipeline.Registered, error) {
			shard = s.shard(0, 1)
			shard.CheckpointRows = 1 + r.Int64N(8)
			return shard.ForRun(), nil
		}, func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
			src := &worldtest.MortalSource{Rand: r, Lanes: in, At: [2]int64{max(next[0], 0), max(next[1], 0)}, Left: -1}
			if kills > 0 {
				src.Left = r.IntN(len(in[0]) / 2)
			}
			return pipeline.Opened{Source: src}, nil
		})
		if err == nil {
			return sink, shard.Counts.All()
		}
		if !errors.Is(err, worldtest.ErrKilled) {
			t.Fatal(err)
		}
		store.Damage(1 + r.IntN(2))
	}
}

// TestFallbackShowsTheSame: a shard whose newer checkpoints are damaged goes back to an older one. It takes the records
// in the recorded order, so every pane message has the same number and the same bytes again. The streams are sparse and
// have idle inputs, and some rows are late in one order and in time in another.
func TestFallbackShowsTheSame(t *testing.T) {
	testsize.Slow(t)
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
				n, different := contradictions(t, log)
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
				_, different = contradictions(t, log)
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
func shown(t *testing.T, s *setup, log *worldtest.PaneLog) (n int64) {
	t.Helper()
	task := s.task()
	for i, v := range log.Values {
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
