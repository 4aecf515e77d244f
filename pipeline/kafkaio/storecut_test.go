package kafkaio

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestStoreSaveCutOff: a process dies at each point of a Save. Until the claim is in the log the number is free for
// the next writer; a claim whose body is not there is a damaged checkpoint, and the next number is free.
func TestStoreSaveCutOff(t *testing.T) {
	one := pipeline.Checkpoint{Data: []byte("one"), Journal: []byte("of one")}
	for _, c := range []struct {
		name  string
		cut   func(t *testing.T, s *Store) claim // what the dead process wrote of checkpoint 2
		left  string
		taken bool // the number
	}{
		{"before anything", func(*testing.T, *Store) claim { return claim{} }, "1:one", false},
		{"between body and claim", func(t *testing.T, s *Store) claim {
			c := body(t, s, []byte("two"))
			c.Chunks = nil
			return c
		}, "1:one", false},
		{"after the claim", func(t *testing.T, s *Store) claim { return body(t, s, []byte("two")) }, "2:two 1:one",
			true},
		{"after a claim without its body", func(_ *testing.T, s *Store) claim {
			return claim{Key: "k", Number: 2, Writer: s.known["k"].writer, Partition: s.place("k"),
				Chunks: []int64{999}, Bytes: 3}
		}, "2:unreadable 1:one", true},
		{"after a claim with another's body", func(t *testing.T, s *Store) claim {
			c := body(t, s, []byte("two"))
			c.CRC++
			return c
		}, "2:unreadable 1:one", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			brokers := kafkatest.Start(t)
			kafkatest.CreateTopics(t, brokers, 3, "checkpoints")
			dead, next := newStore(t, brokers, 1<<20), newStore(t, brokers, 1<<20)
			if err := dead.Save(t.Context(), "k", 1, one); err != nil {
				t.Fatal(err)
			}
			if cl := c.cut(t, dead); len(cl.Chunks) > 0 {
				if _, err := dead.write(t.Context(), 0, cl.recordKey(), cl.encode()); err != nil {
					t.Fatal(err)
				}
			}
			if got := loaded(t, next, "k"); got != c.left {
				t.Fatalf("left is %q, want %q", got, c.left)
			}
			err := next.Save(t.Context(), "k", 2, pipeline.Checkpoint{Data: []byte("new")})
			if c.taken != errors.Is(err, pipeline.ErrFenced) || !c.taken && err != nil {
				t.Errorf("checkpoint 2: %v, its number is taken: %v", err, c.taken)
			}
			want, number := "2:new 1:one", uint64(3)
			if c.taken {
				want = c.left
			}
			if got := loaded(t, newStore(t, brokers, 1<<20), "k"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if err := next.Save(t.Context(), "k", number, pipeline.Checkpoint{Data: []byte("newest")}); err != nil {
				t.Errorf("checkpoint %d: %v", number, err)
			}
			if err := dead.Holds(t.Context(), "k", 2); !errors.Is(err, pipeline.ErrFenced) {
				t.Errorf("the process that was thought dead may go on: %v", err)
			}
		})
	}
}

// body writes what a checkpoint has before its claim.
func body(t *testing.T, s *Store, data []byte) claim {
	t.Helper()
	c := claim{Key: "k", Number: 2, Writer: s.known["k"].writer, Partition: s.place("k"), Bytes: len(data),
		CRC: crc(data)}
	var err error
	if c.Chunks, err = s.writeChunks(t.Context(), c, 0, data); err == nil {
		c.Journal, err = s.writeChunks(t.Context(), c, len(c.Chunks), fmt.Append(nil, "of ", string(data)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestStoreJournal: the journal can be read where the checkpoint cannot, and goes with it.
func TestStoreJournal(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
	s := newStore(t, brokers, 10_000)
	if err := s.Save(t.Context(), "k", 1, pipeline.Checkpoint{Data: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	damaged := body(t, s, make([]byte, 20_000))
	damaged.CRC++
	if _, err := s.write(t.Context(), 0, damaged.recordKey(), damaged.encode()); err != nil {
		t.Fatal(err)
	}
	next := newStore(t, brokers, 10_000)
	stored, err := next.Load(t.Context(), "k")
	if err != nil || len(stored) != 2 || stored[1].Journal != nil {
		t.Fatalf("%d checkpoints, %v; want two, the older without a journal", len(stored), err)
	}
	if _, err := stored[0].Read(); err == nil {
		t.Error("the damaged checkpoint could be read")
	}
	if got, err := stored[0].Journal(); err != nil || string(got) != "of "+string(make([]byte, 20_000)) {
		t.Errorf("journal of %d bytes, %v", len(got), err)
	}
	for n := uint64(3); n <= 5; n++ {
		cp := pipeline.Checkpoint{Data: []byte("x"), Journal: []byte("y")}
		if err := next.Save(t.Context(), "k", n, cp); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := live(t, brokers, 2), 2*3; got != want { // a claim, a chunk and a journal each
		t.Errorf("%d records without a tombstone, want %d", got, want)
	}
}
