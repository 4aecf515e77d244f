package model

import (
	"testing"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// TestShards: which messages of shards count, and where the barrier is after each, saved and restored or not. There is
// none before every shard has closed something.
func TestShards(t *testing.T) {
	s := shards{reached: minPane, counts: pipeline.NewCounts(), log: quiet}
	type message = pipeline.PaneMessage
	for i, c := range []struct {
		m       message
		hears   bool
		current bool
		barrier int64
	}{
		{message{Shard: 0, Of: 2, Seq: 1, Punctuation: true, Closed: 5}, true, true, minPane},
		{message{Shard: 1, Of: 2, Seq: 1, Punctuation: true, Closed: 3}, true, true, 3},
		{message{Shard: 1, Of: 2, Seq: 1, Punctuation: true, Closed: 9}, false, true, 3}, // a repeat
		{message{Shard: 1, Of: 2, Seq: 2, Punctuation: true, Closed: 3, Idle: true}, true, true, 5},
		{message{Shard: 1, Of: 2, Seq: 5, Punctuation: true, Closed: 4}, true, true, 5},  // some were lost; never back
		{message{Shard: 0, Of: 3, Seq: 2, Punctuation: true, Closed: 8}, true, true, 5},  // more shards
		{message{Shard: 1, Of: 2, Seq: 6, Punctuation: true, Closed: 9}, true, false, 5}, // of before there were
		{message{Shard: 1, Of: 3, Seq: 7, Punctuation: true, Closed: 9}, true, true, 5},
		{message{Shard: 2, Of: 3, Seq: 1, Punctuation: true, Closed: 6}, true, true, 6},
		{message{Shard: 2, Of: 3, Epoch: 7, Seq: 1, Punctuation: true, Closed: 6}, true, true, 6}, // begun anew
		{message{Shard: 2, Of: 3, Seq: 2, Punctuation: true, Closed: 9}, false, true, 6},          // of before
	} {
		if i%2 == 1 {
			back := shards{counts: s.counts, log: quiet}
			r := binenc.NewReader(s.append(nil))
			if back.restore(&r); r.Close() != nil {
				t.Fatal(r.Err())
			}
			s = back
		}
		hears := s.hear(&c.m)
		if hears && s.current(&c.m) {
			s.close(&c.m)
		}
		if hears != c.hears || s.current(&c.m) != c.current || s.reached != c.barrier {
			t.Errorf("message %d: counts %v, current %v, barrier %d; want %+v", i, hears, s.current(&c.m), s.reached, c)
		}
	}
	n := s.counts.All()
	for name, want := range map[string]int64{CountRepeats: 1, CountLostPanes: 2, CountEpochs: 1, CountStale: 1,
		CountPanes: 9} {
		if n[name] != want {
			t.Errorf("%s is %d, want %d", name, n[name], want)
		}
	}
}
