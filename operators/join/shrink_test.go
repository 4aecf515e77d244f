package join

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// retained is about how many bytes entries and score rows have taken, used or not; the index is not in it.
func (w *buffer) retained() int {
	n := cap(w.entries)*int(unsafe.Sizeof(entry{})) + 4*(cap(w.slices)+cap(w.free)+cap(w.order))
	for _, p := range w.pools.by {
		n += 4 * cap(p.free)
	}
	return n + w.pools.bytes
}

// TestShrinkLeavesNoTrace runs random scripts without shrinking, and with it wherever a row has gone: what is joined,
// every count and the bytes of the state are the same at each step, with everything in memory and with most on disk.
func TestShrinkLeavesNoTrace(t *testing.T) {
	for seed := range uint64(6) {
		c := Options{Config: Config{Wait: 25, MaxRows: []int{100000, 40}[seed%2], Remember: []int{0, 5, 1000}[seed%3]},
			minShrink: math.MaxInt}
		for _, rows := range []int{-1, 3} {
			if rows >= 0 {
				c = onDisk(t, c, rows)
			}
			whole := newJoinRun(t, c)
			small := c
			small.minShrink = 1
			r := newJoinRun(t, small)
			shrunk := 0
			script := randomScript(seed, 800)
			for at, step := range map[int]string{300: "w 110", 500: "w 160", 799: "w 300"} { // all that waits goes
				script[at] = step
			}
			for i, step := range script {
				whole.do(step)
				before := cap(r.j.w.entries)
				r.do(step)
				r.j.w.shrink()
				if cap(r.j.w.entries) < before {
					shrunk++
				}
				if got, want := countText(r.counts.All()), countText(whole.counts.All()); got != want ||
					!slices.Equal(r.joined, whole.joined) {
					t.Fatalf("seed %d, %d rows, step %d, %s: counts %s, want %s", seed, rows, i, step, got, want)
				}
				got, err := r.j.AppendState(nil)
				if err != nil {
					t.Fatal(err)
				}
				want, err := whole.j.AppendState(nil)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("seed %d, %d rows, step %d, %s: a state of %d bytes, other than that of %d bytes "+
						"without shrinking", seed, rows, i, step, len(got), len(want))
				}
			}
			if shrunk < 3 {
				t.Errorf("seed %d, %d rows: shrunk %d times", seed, rows, shrunk)
			}
			for _, j := range []*Operator{whole.j, r.j} {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestBurstIsGivenBack lets rows come ten times as fast for a while, their labels as much later as before. When the
// last of them has joined, what the buffers hold is within the bounds of shrink again, and the heap is what it was.
func TestBurstIsGivenBack(t *testing.T) {
	const batch, steady = 1000, 20
	for _, c := range []struct {
		name string
		cfg  Options
	}{{"forget", Options{}}, {"remember", Options{Config: Config{Remember: 20_000}}}, {"disk",
		Options{Config: Config{Remember: 20_000, MemoryBytes: 16 << 20, Dir: t.TempDir()}, Name: "s",
			SegmentBytes: 256 << 10}}} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "remember" {
				testsize.Slow(t)
			}
			cfg := c.cfg
			cfg.Wait, cfg.MaxRows, cfg.Slices = time.Hour, 1<<20, []string{"region"}
			counts := pipeline.NewCounts()
			j := New(cfg, host(counts))
			joined, sent := 0, 0
			process := func(b *arrowio.Batch, at int) {
				fillBatch(b, at)
				if _, err := j.Process(context.Background(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
					return nil, nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			predictions, labels := predictionBatch(batch, 10), labelBatch(batch)
			// Until so many batches wait, labels stand still or come twice as fast.
			round := func(waiting int) {
				if (sent-joined)/batch <= waiting {
					process(predictions, sent)
					sent += batch
				}
				for n := 0; n < 2 && (sent-joined)/batch > waiting; n++ {
					process(labels, joined)
					joined += batch
				}
				if err := j.Advance(context.Background(), int64(sent)*1000, nil); err != nil {
					t.Fatal(err)
				}
			}
			level := func(waiting int) (retained int, heap uint64) {
				for range 3 * waiting {
					round(waiting)
				}
				for (sent-joined)/batch != waiting {
					round(waiting)
				}
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return j.w.retained(), m.HeapAlloc
			}
			before, heapBefore := level(steady)
			most, heapMost := level(10 * steady)
			after, heapAfter := level(steady)
			t.Logf("retained %d, %d in the burst, %d after it; heap %d, %d, %d", before, most, after, heapBefore,
				heapMost, heapAfter)
			if float64(most) < 2*float64(before) {
				t.Fatalf("the burst took %d bytes, %d before it: too little for a test", most, before)
			}
			// Less than half of what is there is not in use, and a slice has grown by a quarter beyond that at most.
			live := j.w.live*(int(unsafe.Sizeof(entry{}))+4) + steady*batch*4*(10+1)
			if float64(after) > 2*1.25*float64(live) {
				t.Errorf("%d bytes retained for %d live ones, allowed are %.0f", after, live, 2*1.25*float64(live))
			}
			if grew, allowed := int64(heapAfter)-int64(heapBefore), int64(heapMost-heapBefore)/4; grew > allowed {
				t.Errorf("the heap is %d bytes larger than before the burst, in which it had grown by %d; "+
					"allowed is a quarter", grew, heapMost-heapBefore)
			}
			if n := counts.All(); n[pipeline.CountJoined] != int64(joined) || n[pipeline.CountWaiting] != steady*batch {
				t.Errorf("counts %v, want %d joined and %d waiting", n, joined, steady*batch)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
