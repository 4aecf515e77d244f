package pipeline

import (
	"errors"
	"testing"
)

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

// TestInspectMoreInputs: a checkpoint of a build with more inputs than this one knows is an error.
func TestInspectMoreInputs(t *testing.T) {
	o := make(offsets, len(inputNames)+1)
	c, err := EncodeCheckpoint([]Section{offsetsSection(&o)})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := InspectCheckpoint(c.Data); !errors.Is(err, ErrCheckpoint) {
		t.Errorf("%+v, %v", info, err)
	}
}
