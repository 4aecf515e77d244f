package kafkaio

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// nextWithin is the next record, or false where none comes in a while.
func nextWithin(t *testing.T, s *Source, d time.Duration) (pipeline.Record, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	r, err := s.Next(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	return r, err == nil
}

// TestGate closes and opens the gate before two sources, one of which is made while it is closed.
func TestGate(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z", "y")
	client := newClient(t, brokers)
	g := &Gate{}
	spec := Spec{Client: client, Topics: both, Next: at(-1, -1), IdleTimeout: 50 * time.Millisecond, Gate: g,
		ReportPause: true}
	s := source(t, spec)
	kafkatest.Write(t, brokers, message("z", 0, "z0", 1))
	if r, ok := nextWithin(t, s, patience); !ok || string(r.Value) != "z0" {
		t.Fatalf("got %+v", r)
	}
	if g.Settled() {
		t.Error("settled, though z0 is in no checkpoint")
	}
	s.Shown(s.HandedOut())
	if err := s.Commit(context.Background(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	if !g.Close() || g.Close() {
		t.Error("a gate closes once")
	}
	if g.Settled() {
		t.Error("settled, though the task does not know of the pause and may take another record")
	}
	if r, ok := nextWithin(t, s, patience); !ok || !r.Paused {
		t.Fatalf("got %+v, want the news of the pause", r)
	}
	if g.Settled() {
		t.Error("settled, though what the news of the pause changes is in no checkpoint")
	}
	s.Shown(s.HandedOut())
	if !g.Settled() {
		t.Error("not settled after the checkpoint that has the news")
	}
	kafkatest.Write(t, brokers, message("z", 0, "z1", 2), message("z", 0, "z2", 3))
	later := source(t, spec)
	if r, ok := nextWithin(t, later, patience); !ok || !r.Paused {
		t.Errorf("one made meanwhile got %+v", r)
	}
	for _, s := range []*Source{s, later} { // longer than the idle timeout
		if r, ok := nextWithin(t, s, 150*time.Millisecond); ok {
			t.Errorf("got %+v through a closed gate", r)
		}
		if s.Buffered() {
			t.Error("something is at hand behind a closed gate")
		}
	}
	eventually.True(t, "seen to lag", func() bool { return s.Lags()[pipeline.Logits].Offsets == 2 })
	if !g.Settled() {
		t.Error("not settled any more")
	}
	if !g.Open() || g.Open() {
		t.Error("a gate opens once")
	}
	for _, want := range []string{"z1", "z2"} {
		if r, ok := nextWithin(t, s, patience); !ok || string(r.Value) != want {
			t.Fatalf("got %+v, want %s", r, want)
		}
	}
	if r, ok := nextWithin(t, later, patience); !ok || string(r.Value) != "z0" {
		t.Errorf("got %+v, want z0", r)
	}
	var none *Gate
	if none.wait() != nil {
		t.Error("no gate is a closed gate")
	}
}

// TestLag: 0 at the end of the log although the last offsets are markers and an aborted record; in between what
// remains; an open transaction is none.
func TestLag(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	client := newClient(t, brokers)
	kafkatest.Write(t, brokers, message("z", 0, "z0", 1000), message("z", 0, "z1", 2000))
	transact(t, brokers, "a", kgo.TryAbort)
	one := map[pipeline.Input]string{pipeline.Logits: "z"}
	s := source(t, Spec{Client: client, Topics: one, Next: map[pipeline.Input]int64{pipeline.Logits: -1}})
	_, end, err := Bounds(context.Background(), client, "z", 0)
	if err != nil || end < 4 {
		t.Fatalf("the log ends at %d, %v; want two records, one aborted, a marker", end, err)
	}
	lag := func() Lag { return s.Lags()[pipeline.Logits] }
	eventually.True(t, "all lag", func() bool { return lag().Offsets == end })
	if r, ok := nextWithin(t, s, patience); !ok || string(r.Value) != "z0" {
		t.Fatalf("got %+v", r)
	}
	if l := lag(); l.Offsets != end-1 || l.Oldest != 2000e6 {
		t.Errorf("lag %+v, want %d offsets since z1's time", l, end-1)
	}
	if r, ok := nextWithin(t, s, patience); !ok || string(r.Value) != "z1" {
		t.Fatalf("got %+v", r)
	}
	eventually.True(t, "no lag at the end", func() bool { return lag() == Lag{} && s.CaughtUp() })
}

// TestUnshown: a status is of everything only when it is of the news, too, and when none is overdue.
func TestUnshown(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	s := source(t, Spec{Client: newClient(t, brokers), Topics: map[pipeline.Input]string{pipeline.Logits: "z"},
		Next: map[pipeline.Input]int64{pipeline.Logits: -1}, IdleTimeout: 100 * time.Millisecond})
	s.Shown(0)
	eventually.True(t, "news that nobody has asked for", s.Unshown)
	if r, ok := nextWithin(t, s, patience); !ok || !r.Idle || s.HandedOut() != 1 {
		t.Fatalf("got %+v", r)
	}
	for _, shown := range []bool{false, true} {
		if s.Unshown() == shown {
			t.Errorf("unshown %v after the news, its status shown: %v", s.Unshown(), shown)
		}
		s.Shown(s.HandedOut())
	}
	kafkatest.Write(t, brokers, message("z", 0, "z0", 1000))
	if r, ok := nextWithin(t, s, patience); !ok || string(r.Value) != "z0" || !s.Unshown() {
		t.Fatalf("got %+v, unshown %v", r, s.Unshown())
	}
	s.Shown(2)
	eventually.True(t, "idle again", s.Unshown)
}

// transact writes one record in a transaction of a producer of its own, and ends it.
func transact(t *testing.T, brokers []string, value string, end kgo.TransactionEndTry) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("lag-"+value),
		kgo.DefaultProduceTopic("z"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := c.ProduceSync(ctx, &kgo.Record{Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := c.EndTransaction(ctx, end); err != nil {
		t.Fatal(err)
	}
}

// TestCommitted reads back what a group has committed.
func TestCommitted(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	client := newClient(t, brokers)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g := Group{ID: "g", Brokers: brokers, Topics: []string{"z"}, Log: quiet, Client: client}
	err := g.Run(ctx, func(ctx context.Context, p int, commit CommitFunc) error {
		defer cancel()
		if o, err := Committed(ctx, client, "g", "z", p); err != nil || o != -1 {
			t.Errorf("of a group that has committed nothing: %d, %v; want -1", o, err)
		}
		if err := commit(ctx, map[string]int64{"z": 42}); err != nil {
			t.Error(err)
		}
		if o, err := Committed(ctx, client, "g", "z", p); err != nil || o != 42 {
			t.Errorf("got %d, %v; want 42", o, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
