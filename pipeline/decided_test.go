package pipeline

import (
	"fmt"
	"strings"
	"testing"
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

// BenchmarkDecided: a shard is asked after each record what it has decided. A backlog of a slow stream has a pane a
// record, so a checkpoint's interval of it is hundreds of thousands of messages, and they must cost a record nothing.
func BenchmarkDecided(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", 2*n), func(b *testing.B) {
			s := waiting(b, n, n)
			b.ReportAllocs()
			for b.Loop() {
				s.Out.Put(Message{Stream: StreamCalibrated})
				if n := len(s.Out.prompt()); n != 1 || s.Decided().Full {
					b.Fatalf("%d calibrated messages, want 1", n)
				}
			}
		})
	}
}

// TestPromptLeavesTheOthers: calibrated messages go at once, the others stay in their order, however often it is asked.
func TestPromptLeavesTheOthers(t *testing.T) {
	o, left := NewOut(NewCounts()), ""
	for i, stream := range []Stream{StreamDeadLetter, StreamCalibrated, StreamCalibrated, StreamDeadLetter} {
		for n := range i + 1 {
			o.Put(Message{Stream: stream, Key: []byte{byte('a' + i), byte('0' + n)}})
		}
		prompt := 0
		for _, m := range o.prompt() {
			if prompt++; m.Stream != StreamCalibrated {
				t.Errorf("%s goes at once", m.Key)
			}
		}
		if want := map[Stream]int{StreamCalibrated: i + 1}[stream]; prompt != want {
			t.Errorf("%d messages go at once, want %d", prompt, want)
		}
	}
	for _, m := range o.Drain() {
		left += string(m.Key)
	}
	if want := "a0d0d1d2d3"; left != want || len(o.prompt()) != 0 {
		t.Errorf("left %q, want %q", left, want)
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
