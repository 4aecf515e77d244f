package pipeline

import "testing"

// TestInspectShard: a shard's checkpoint, with clocks of models, is looked at without the shard.
func TestInspectShard(t *testing.T) {
	w := NewWatermark(2, 10)
	w.Tolerance = 100
	w.Observe(Logits, 2000)
	w.Observe(Labels, 1500)
	w.Clocks.Observe(Logits, "m", 2000)
	w.Advance(100)
	s := NewShard(ShardSpec{Inputs: 2, PaneLength: 100, Watermark: w,
		Host: Host{Out: NewOut(NewCounts()), Outbox: NewOutbox(0, 1, 100, 1), Counts: NewCounts()}})
	c, err := EncodeCheckpoint(s.Sections())
	if err != nil {
		t.Fatal(err)
	}
	info, err := InspectCheckpoint(c.Data)
	if err != nil || info.Watermark != Format(1490) {
		t.Errorf("%+v, %v, want a watermark of %s", info, err, Format(1490))
	}
}
