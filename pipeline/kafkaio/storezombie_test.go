package kafkaio

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestStoreRefusesAZombie stops a writer after its look at who holds the task and before it writes, while another takes
// the task over: its claim is refused though it is in the log, nothing that it wrote is read by anybody, journal
// and files among it, and all of that gets tombstones. The other goes on.
func TestStoreRefusesAZombie(t *testing.T) {
	for _, behind := range []uint64{1, 2} { // checkpoints that the other has written meanwhile; it keeps both
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			ctx, brokers := t.Context(), kafkatest.Start(t)
			kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
			zombie, other := newStore(t, brokers, 10_000), newStore(t, brokers, 10_000)
			first := withFiles(t, "of both")
			if err := zombie.Save(ctx, "k", 1, first); err != nil {
				t.Fatal(err)
			}
			if err := zombie.Holds(ctx, "k", 1); err != nil {
				t.Fatal(err)
			}
			if _, err := other.Load(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			good := withFiles(t, "of both", "the other's")
			good.Journal = []byte("the other's order")
			for n := range behind {
				if err := other.Save(ctx, "k", 2+n, good); err != nil {
					t.Fatal(err)
				}
			}
			before, claims := live(t, brokers, 2), end(t, brokers, 0)

			bad := withFiles(t, "of both", "of the zombie", "more of it")
			bad.Journal = []byte("the zombie's order")
			if err := zombie.Save(ctx, "k", 2, bad); !errors.Is(err, pipeline.ErrFenced) {
				t.Errorf("the zombie's checkpoint: got %v, want ErrFenced", err)
			}
			if end(t, brokers, 0) == claims {
				t.Error("the zombie's claim was never in the log: the look refused it, not the order of the log")
			}
			for _, reader := range []*Store{newStore(t, brokers, 10_000), zombie, other} {
				if err := fetched(t, reader, good); err != nil {
					t.Error(err)
				}
				stored, err := reader.Load(ctx, "k")
				if err != nil || stored[0].Number != 1+behind {
					t.Fatalf("newest %d, %v, want %d", stored[0].Number, err, 1+behind)
				}
				if got, err := stored[0].Journal(); err != nil || string(got) != string(good.Journal) {
					t.Errorf("journal %q, %v, want %q", got, err, good.Journal)
				}
			}
			if got := live(t, brokers, 2); got != before {
				t.Errorf("%d records without a tombstone, before the zombie woke %d", got, before)
			}
			if err := zombie.Holds(ctx, "k", 1); !errors.Is(err, pipeline.ErrFenced) {
				t.Errorf("its next look: got %v, want ErrFenced", err)
			}
			if err := other.Save(ctx, "k", 2+behind, good); err != nil {
				t.Errorf("the other's next: %v", err)
			}
		})
	}
}

// TestStoreRefusesItsOwnPast: a process gives up to wait for a broker that stands still, is given the task again, and
// goes on from what it reads. The claim that it has sent before is of another state. Where that comes first it counts,
// and the process must not believe that its new state does; where it comes later nobody may take it for the new one.
func TestStoreRefusesItsOwnPast(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprint("comes first: ", first), func(t *testing.T) {
			ctx, brokers := t.Context(), kafkatest.Start(t)
			kafkatest.CreateTopics(t, brokers, 2, "checkpoints")
			s := newStore(t, brokers, 10_000)
			if err := s.Save(ctx, "k", 1, pipeline.Checkpoint{Data: []byte("one")}); err != nil {
				t.Fatal(err)
			}
			past := body(t, s, []byte("past"))
			come := func() {
				if _, err := s.write(ctx, 0, past.recordKey(), past.encode()); err != nil {
					t.Fatal(err)
				}
			}
			if got := loaded(t, s, "k"); got != "1:one" {
				t.Fatal(got)
			}
			want := "2:now 1:one"
			if first {
				come()
				want = "2:past 1:one"
			}
			err := s.Save(ctx, "k", 2, pipeline.Checkpoint{Data: []byte("now")})
			if first != errors.Is(err, pipeline.ErrFenced) || !first && err != nil {
				t.Errorf("the new state: %v, another came first: %v", err, first)
			}
			if !first {
				come()
			}
			if past.recordKey() == (claim{Key: "k", Number: 2, Writer: s.known["k"].writer}).recordKey() {
				t.Error("the two claims have one key: of these a compacted topic keeps the last")
			}
			if got := loaded(t, newStore(t, brokers, 10_000), "k"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
