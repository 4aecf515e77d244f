package pipeline

import (
	"math"
	"strings"
	"testing"
	"time"
)

// waiting is a shard with so many pane messages and dead letters that wait for a checkpoint.
func waiting(t testing.TB, panes, letters int) *Shard {
	t.Helper()
	counts := NewCounts()
	s := NewShard(ShardSpec{Inputs: 1, PaneLength: 10, Watermark: NewWatermark(1, 0),
		Host: Host{Out: NewOut(counts), Outbox: NewOutbox(0, 1, 10, 1), Counts: counts}})
	for i := range panes {
		s.Outbox.Punctuate(Punctuation{Closed: int64(i)})
	}
	for range letters {
		s.Out.Put(Message{Stream: StreamDeadLetter})
	}
	return s
}

// TestWhatWaitsCostsRecordsNothing: a shard is asked after each record what it has decided. A backlog of a slow stream
// has a pane a record, so a checkpoint's interval of it is hundreds of thousands of messages.
func TestWhatWaitsCostsRecordsNothing(t *testing.T) {
	cost := func(s *Shard) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 20 {
			start := time.Now()
			for range 100 {
				s.Out.Put(Message{Stream: StreamCalibrated})
				if n := len(s.Out.prompt()); n != 1 {
					t.Fatalf("%d calibrated messages, want 1", n)
				}
				if s.Decided().Full {
					t.Fatal("full")
				}
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	few, many := cost(waiting(t, 1, 1)), cost(waiting(t, 100_000, 100_000))
	if t.Logf("100 records: %v, with 200,000 messages that wait %v", few, many); many > 100*few {
		t.Errorf("100 records take %v, with 200,000 messages that wait %v", few, many)
	}
}

// TestFullOutbox: a shard whose pane messages take too much asks for a checkpoint, also after it was restored with
// them, and until they are written.
func TestFullOutbox(t *testing.T) {
	s := waiting(t, 1000, 0)
	cells := []Cell{{Set: []byte(strings.Repeat("x", 1<<20))}}
	for n := 0; !s.Decided().Full; n++ {
		if n > maxBuffered>>20 {
			t.Fatalf("%d MiB wait, and the shard is not full", n)
		}
		s.Outbox.Increment("m", 1, false, cells)
	}
	if n := len(s.Decided().After); n != 1000+maxBuffered>>20 {
		t.Errorf("full at %d messages", n)
	}
	state, err := s.Outbox.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	again := waiting(t, 5, 0)
	if err := again.Outbox.RestoreState(state); err != nil || !again.Decided().Full {
		t.Errorf("restored: full %t, %v", again.Decided().Full, err)
	}
	if again.Written(); again.Decided().Full {
		t.Error("full when all is written")
	}
}
