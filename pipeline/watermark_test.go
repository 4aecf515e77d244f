package pipeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// step is one event of a watermark with two inputs: what happens, and where the watermark is then.
type step struct {
	do   func(w *Watermark)
	want Time
}

func row(in Input, t Time) func(*Watermark)     { return func(w *Watermark) { w.Observe(in, t) } }
func control(in Input, t Time) func(*Watermark) { return func(w *Watermark) { w.Control(in, t) } }
func idle(in Input) func(*Watermark)            { return func(w *Watermark) { w.Idle(in) } }

func TestWatermark(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the slower input holds it back", []step{{row(Logits, 100), NoTime}, {row(Labels, 50), 45},
			{row(Labels, 200), 95}, {row(Logits, 120), 115}}},
		{"an older row changes nothing", []step{{row(Logits, 100), NoTime}, {row(Labels, 100), 95},
			{row(Logits, 20), 95}}},
		{"control records are not subject to lateness", []step{{row(Logits, 100), NoTime}, {control(Labels, 98), 95},
			{control(Logits, 98), 98}}},
		{"an older control record changes nothing", []step{{control(Logits, 100), NoTime},
			{control(Labels, 100), 100}, {control(Labels, 50), 100}}},
		{"an idle input holds nothing back", []step{{row(Logits, 100), NoTime}, {idle(Labels), 95},
			{row(Logits, 200), 195}}},
		{"one that wakes up does not lower it", []step{{row(Logits, 100), NoTime}, {idle(Labels), 95},
			{row(Labels, 10), 95}, {row(Logits, 300), 95}, {row(Labels, 200), 195}}},
		{"all idle: to the end of the newest row's pane", []step{{row(Logits, 101), NoTime}, {row(Labels, 117), 96},
			{idle(Labels), 96}, {idle(Logits), 120}, {row(Logits, 118), 120}}},
		{"all idle at a pane's edge: that pane is over too", []step{{row(Logits, 120), NoTime},
			{idle(Logits), NoTime}, {idle(Labels), 130}}},
		{"all idle before anything came", []step{{idle(Logits), NoTime}, {idle(Labels), NoTime}}},
		{"all idle after a control record", []step{{control(Logits, 105), NoTime}, {idle(Logits), NoTime},
			{idle(Labels), 105}}},
		{"before 1970", []step{{row(Logits, -101), NoTime}, {idle(Labels), -106}, {idle(Logits), -100}}},
		{"near the beginning of time", []step{{row(Logits, math.MinInt64+2), NoTime}, {row(Labels, 0), NoTime},
			{control(Logits, math.MinInt64+3), math.MinInt64 + 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWatermark(2, 5)
			for i, s := range c.steps {
				s.do(w)
				if got, _ := w.Advance(10); got != s.want {
					t.Fatalf("step %d: watermark %d, want %d", i, got, s.want)
				}
				w = reopened(t, w)
			}
		})
	}
}

// reopened puts a watermark through its encoding; idleness is taken over, as the inputs prove it anew.
func reopened(t *testing.T, w *Watermark) *Watermark {
	t.Helper()
	b, err := w.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := NewWatermark(len(w.in), w.Lateness)
	if err := out.RestoreState(b); err != nil {
		t.Fatal(err)
	}
	for i := range w.in {
		out.in[i].idle = w.in[i].idle
	}
	if out.Now() != w.Now() {
		t.Fatalf("watermark %d after restoring %d", out.Now(), w.Now())
	}
	return out
}

func TestWatermarkNeverFalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		w := NewWatermark(1+r.IntN(2), r.Int64N(50))
		last := NoTime
		for range 100 {
			in := Input(r.IntN(len(w.in)))
			switch x := r.Int64N(1000) - 200; r.IntN(4) {
			case 0:
				w.Control(in, x)
			case 1:
				w.Idle(in)
			default:
				w.Observe(in, x)
			}
			now, rose := w.Advance(10)
			if now < last || rose != (now > last) {
				t.Fatalf("watermark went from %d to %d, rose = %v", last, now, rose)
			}
			last = now
		}
	}
}

func TestPaneIndex(t *testing.T) {
	for _, c := range []struct{ t, length, want int64 }{
		{0, 10, 0}, {9, 10, 0}, {10, 10, 1}, {-1, 10, -1}, {-10, 10, -1}, {-11, 10, -2},
		{math.MaxInt64, 1, math.MaxInt64}, {math.MinInt64, 1, math.MinInt64}, {math.MinInt64, 1 << 62, -2},
	} {
		if got := PaneIndex(c.t, c.length); got != c.want {
			t.Errorf("PaneIndex(%d, %d) = %d, want %d", c.t, c.length, got, c.want)
		}
	}
}

// clock is a watermark with models, in panes of 10.
func clock(tolerance int64) *Watermark {
	w := NewWatermark(1, 0)
	w.Tolerance = tolerance
	return w
}

func rowOf(w *Watermark, model string, t Time) {
	w.Clocks.Observe(Logits, model, t)
	w.Observe(Logits, t)
	w.Advance(10)
	w.Clocks.close(10)
}

// TestClocksAreBounded has more models than there are clocks: those beyond have the shard's, nobody's is taken away,
// and the models that ended make room.
func TestClocksAreBounded(t *testing.T) {
	w := clock(100)
	for i := range maxClocks + 500 {
		rowOf(w, fmt.Sprint("m", i), 1000)
	}
	if n := len(w.Clocks.by); n != maxClocks {
		t.Fatalf("%d clocks, want %d", n, maxClocks)
	}
	state, err := w.AppendState(nil)
	if err != nil || len(state) > 64*maxClocks {
		t.Errorf("%d bytes of state for %d clocks, err %v", len(state), maxClocks, err)
	}
	rowOf(w, "m0", 1200)
	rowOf(w, "m1499", 1200)
	if got, shard := w.Clocks.ClosedOf("m1499"), w.Clocks.at.closed; got != shard {
		t.Errorf("a model without a clock: pane %d, want that of the shard, %d", got, shard)
	}
	rowOf(w, "m0", 1200+100+forgetClock+20)
	if len(w.Clocks.by) != 1 || w.Clocks.by["m0"] == nil {
		t.Errorf("%d clocks after an hour in which one model sent rows", len(w.Clocks.by))
	}
}

// TestForgottenClocksAreTold: whoever takes what a shard has closed hears of the models that it has forgotten. Where
// the watermark jumps, the panes of a silent model are closed first: a model without a clock has none that are.
func TestForgottenClocksAreTold(t *testing.T) {
	w := clock(100)
	rowOf(w, "a", 1000)
	rowOf(w, "b", 1000)
	told := func(at Time) []ModelClosed {
		w.Clocks.Observe(Logits, "a", at)
		w.Observe(Logits, at)
		w.Advance(10)
		_, gone := w.Clocks.close(10)
		return w.Clocks.apart(gone)
	}
	jump := 2000 + forgetClock
	if got, want := told(jump), []ModelClosed{{"b", (jump - 100) / 10}}; !slices.Equal(got, want) {
		t.Errorf("told %v after a jump, want %v", got, want)
	}
	if got, want := told(jump+10), []ModelClosed{{"b", Forgotten}}; !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
