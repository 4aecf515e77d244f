package kafkaio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio/recordset"
)

func newStore(t *testing.T, brokers []string, maxBytes int) *Store {
	t.Helper()
	s, err := NewStore(t.Context(), StoreSpec{
		Client:   newClient(t, brokers),
		Topic:    "checkpoints",
		Keep:     2,
		MaxBytes: maxBytes,
		Log:      quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loaded are the checkpoints of a key as "number:bytes", newest first; long ones by their length.
func loaded(t *testing.T, s pipeline.CheckpointStore, key string) string {
	t.Helper()
	stored, err := s.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, st := range stored {
		b, err := st.Read()
		if err != nil {
			out = append(out, fmt.Sprintf("%d:unreadable", st.Number))
			continue
		}
		if len(b) > 20 {
			b = fmt.Append(nil, len(b))
		}
		out = append(out, fmt.Sprintf("%d:%s", st.Number, b))
	}
	return strings.Join(out, " ")
}

func TestStore(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions, " partitions"), func(t *testing.T) {
			brokers := kafkatest.Start(t)
			kafkatest.CreateTopics(t, brokers, partitions, "checkpoints")
			s := newStore(t, brokers, 1<<20)
			if got := loaded(t, s, "g/shard-1"); got != "" {
				t.Fatalf("an empty store has %s", got)
			}
			for n := uint64(1); n <= 5; n++ {
				for _, key := range []string{"g/shard-1", "g/shard-10"} {
					if err := s.Save(t.Context(), key, n,
						pipeline.Checkpoint{Data: fmt.Append(nil, key[2:], " ", n)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			for key, want := range map[string]string{"g/shard-1": "5:shard-1 5 4:shard-1 4",
				"g/shard-10": "5:shard-10 5 4:shard-10 4", "g/shard": ""} {
				if got := loaded(t, newStore(t, brokers, 1<<20), key); got != want {
					t.Errorf("%s: got %q, want %q", key, got, want)
				}
			}
			// two keys, two checkpoints: a claim and a chunk each
			if got, want := live(t, brokers, partitions), 8; got != want {
				t.Errorf("%d records without a tombstone, want %d", got, want)
			}
		})
	}
}

// live counts the records that compaction would leave.
func live(t *testing.T, brokers []string, partitions int) int {
	t.Helper()
	n := 0
	for p := range partitions {
		client := newClient(t, brokers)
		_, end, err := Bounds(t.Context(), client, "checkpoints", p)
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]bool{}
		for offset := int64(0); offset < end; {
			res, err := fetchCommitted(t.Context(), client, span{"checkpoints", p, offset, 1 << 20, 1 << 20}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if offset, err = res.Each(offset, recordset.LimitsOf(1<<20), func(r *pipeline.Record, _ int) error {
				last[string(r.Key)] = r.Value != nil
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, alive := range last {
			if alive {
				n++
			}
		}
	}
	return n
}

func TestStoreChunks(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	s := newStore(t, brokers, 10_000)
	for n, size := range []int{0, 5904, 5905, 100_000} {
		data := bytes.Repeat([]byte{byte(n)}, size)
		if err := s.Save(t.Context(), "k", uint64(n+1), pipeline.Checkpoint{Data: data}); err != nil {
			t.Fatal(err)
		}
		stored, err := newStore(t, brokers, 10_000).Load(t.Context(), "k")
		if err != nil || len(stored) == 0 {
			t.Fatalf("%d bytes: %d checkpoints, %v", size, len(stored), err)
		}
		if got, err := stored[0].Read(); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: read back %d, %v", size, len(got), err)
		}
	}
	// A chunk that is lost makes that checkpoint unreadable, not the one before.
	last := s.known["k"].winners()[1]
	if _, err := s.write(t.Context(), last.Partition, last.chunkKey(3), nil); err != nil {
		t.Fatal(err)
	}
	if got, want := loaded(t, s, "k"), "4:100000 3:5905"; got != want {
		t.Errorf("before compaction the chunk is still at its offset: got %s, want %s", got, want)
	}
	last.Chunks[3] = last.Chunks[2]
	if _, _, err := s.read(t.Context(), last); err == nil ||
		!strings.Contains(err.Error(), "chunk 3 of 17: it is not at offset") {
		t.Errorf("a chunk at another's offset: got %v", err)
	}
}

func TestStoreFences(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 3, "checkpoints")
	ctx := t.Context()
	one, two := newStore(t, brokers, 1<<20), newStore(t, brokers, 1<<20)
	if err := one.Save(ctx, "k", 1, pipeline.Checkpoint{Data: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	for n := uint64(2); n <= 6; n++ { // 2 gets its tombstone meanwhile
		if err := two.Save(ctx, "k", n, pipeline.Checkpoint{Data: []byte("two")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Holds(ctx, "k", 1); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("after another's checkpoint: got %v, want ErrFenced", err)
	}
	if err := two.Holds(ctx, "k", 6); err != nil {
		t.Errorf("the newest is its own: %v", err)
	}
	if err := one.Save(ctx, "k", 2, pipeline.Checkpoint{Data: []byte("late")}); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("a number that is gone: got %v, want ErrFenced", err)
	}
	if err := one.Save(ctx, "k", 7, pipeline.Checkpoint{Data: []byte("one")}); err != nil {
		t.Errorf("after it has seen the others' it may go on: %v", err)
	}
	if err := two.Save(ctx, "k", 7, pipeline.Checkpoint{Data: []byte("two")}); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("the same number twice: got %v, want ErrFenced", err)
	}
	if got, want := loaded(t, one, "k"), "7:one 6:two"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := live(t, brokers, 3), 4; got != want {
		t.Errorf("%d records without a tombstone, want %d: losers remove theirs", got, want)
	}
}

// TestStoreReadyComesBeforeTheClaim: when the outputs are written, the chunks are in the topic and the claim is not;
// there is none where the outputs cannot be written.
func TestStoreReadyComesBeforeTheClaim(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	s, other := newStore(t, brokers, 1<<20), newStore(t, brokers, 1<<20)
	refused := errors.New("no broker")
	c := pipeline.Checkpoint{Data: []byte("one"), Journal: []byte("order"), Ready: func() error {
		if got := live(t, brokers, 2); got != 2 {
			t.Errorf("%d records, want the chunk and the journal", got)
		}
		if got := loaded(t, other, "k"); got != "" {
			t.Errorf("another process sees %s", got)
		}
		return refused
	}}
	if err := s.Save(t.Context(), "k", 1, c); !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
	if got := loaded(t, other, "k"); got != "" {
		t.Errorf("another process sees %s", got)
	}
	c.Ready = nil
	if err := s.Save(t.Context(), "k", 1, c); err != nil || loaded(t, other, "k") != "1:one" {
		t.Errorf("%v, another process sees %s", err, loaded(t, other, "k"))
	}
}

// TestStoreOneWriterANumber races writers for the same numbers.
func TestStoreOneWriterANumber(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	for n := uint64(1); n <= 10; n++ {
		var wins atomic.Int32
		var wg sync.WaitGroup
		for w := range 4 {
			s := newStore(t, brokers, 1<<20)
			wg.Go(func() {
				err := s.Save(context.Background(), "k", n, pipeline.Checkpoint{Data: fmt.Append(nil, w)})
				switch {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, pipeline.ErrFenced):
					t.Errorf("number %d: %v", n, err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("number %d has %d writers", n, wins.Load())
		}
	}
}
