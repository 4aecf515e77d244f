package arrowio

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/internal/testsize"
)

var (
	mutations    = flag.Int("mutations", 40_000, "number of mutated messages that TestMutatedMessages decodes")
	mutationSeed = flag.Int("mutation-seed", 2, "which messages those are")
)

var reasons = map[string]bool{
	wire.Truncated: true, wire.NotArrow: true, wire.NoSchema: true, wire.Trailing: true, wire.TooLarge: true,
	wire.Compressed: true, wire.Shape: true, wire.Dictionary: true, wire.ColumnType: true, wire.Duplicate: true,
	wire.NoColumn: true, wire.NoModel: true, wire.TooManyRows: true, wire.BadText: true,
}

// touch reads every value that a consumer of b may read, so that a bad slice or index panics here.
func touch(b *Batch) (sum float64) {
	row := func(name string, n, per int) {
		if n != 0 && n != b.N*per {
			panic(fmt.Sprintf("%s has %d values for %d rows of %d", name, n, b.N, per))
		}
	}
	row("scores", len(b.Scores), b.K)
	row("features", len(b.Features), b.D)
	row("ids", len(b.IDs), 1)
	row("ts", len(b.TS), 1)
	row("label", len(b.Label), 1)
	row("served", len(b.Served), 1)
	row("weight", len(b.Weight), 1)
	row("model", len(b.Model), 1)
	row("reject", len(b.Reject), 1)
	for _, v := range [][]float32{b.Features, b.Served, b.Weight} {
		for _, x := range v {
			sum += float64(x)
		}
	}
	for i := range b.N {
		if b.Model != nil && b.Models[b.Model[i]].Model == "" && b.Kind == Predictions && b.Reject[i] == "" {
			panic("a good row without a model")
		}
		for _, s := range b.Slices {
			if s.Index[i] >= 0 {
				sum += float64(len(s.Values[s.Index[i]]))
			}
		}
		if b.Label != nil && (b.Label[i] < -1 || b.K > 0 && int(b.Label[i]) >= b.K) {
			panic(fmt.Sprintf("label %d of %d classes", b.Label[i], b.K))
		}
		if b.Reject == nil || b.Reject[i] == "" {
			for _, x := range b.Scores[i*b.K : (i+1)*b.K] {
				if x-x != 0 {
					panic("a good row with scores that are not finite")
				}
			}
		}
	}
	return sum + float64(len(b.IDs)+len(b.TS))
}

// hostile decodes messages that may be anything, and measures what that costs.
type hostile struct {
	d      *Decoder
	o      Options
	allocs []metrics.Sample

	decoded, accepted, compared int
	mostBytes                   uint64
	longest                     time.Duration
}

func newHostile(o Options) *hostile {
	d := NewDecoder(o)
	return &hostile{d: d, o: d.opt, allocs: []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}}
}

func (h *hostile) allocated() uint64 {
	metrics.Read(h.allocs)
	return h.allocs[0].Value.Uint64()
}

// Bounds on one message. Memory: what the decoder documents, a small multiple of the message and what it may inflate.
// Time: two orders of magnitude above what the slowest message takes, since the machine may be busy, and the least of
// three tries.
const (
	fixedBytes    = 8 << 20 // schemas whose fields share a long name, slabs with empty rows
	bytesPerByte  = 64
	inflatedTwice = 2
	longestDecode = 500 * time.Millisecond
	// The cheap count of allocations lags behind by what the other code of the test has allocated.
	suspicious = 1 << 20
)

// limit is how many bytes decoding value may allocate.
func (h *hostile) limit(value []byte) uint64 {
	n := uint64(fixedBytes + bytesPerByte*len(value))
	if h.o.Inflate {
		n += inflatedTwice * uint64(h.o.MaxInflated)
	}
	return n
}

// exactly is how many bytes decoding value allocates, by a count that stops the world.
func (h *hostile) exactly(value []byte, kind Kind) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = h.d.Decode(value, testOrigin, kind)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// decode decodes value, checks time, memory, error and batches, and compares them with what the Arrow library reads.
func (h *hostile) decode(t testing.TB, value []byte, kind Kind) {
	before, start := h.allocated(), time.Now()
	bs, err := h.d.Decode(value, testOrigin, kind)
	took, bytes := time.Since(start), h.allocated()-before
	h.decoded++
	if bytes > suspicious {
		bytes = h.exactly(value, kind)
	}
	if limit := h.limit(value); bytes > limit {
		t.Fatalf("%d bytes allocated, at most %d, for %x", bytes, limit, value)
	}
	for try := 0; took > longestDecode; try++ {
		if try == 3 {
			t.Fatalf("took %v for %x", took, value)
		}
		start = time.Now()
		_, _ = h.d.Decode(value, testOrigin, kind)
		took = min(took, time.Since(start))
	}
	h.mostBytes, h.longest = max(h.mostBytes, bytes), max(h.longest, took)
	if err != nil {
		var de *DecodeError
		if !errors.As(err, &de) || !reasons[de.Reason] || len(de.Detail) > 240 || bs != nil {
			t.Fatalf("got %d batches and error %v for %x", len(bs), err, value)
		}
		return
	}
	h.accepted++
	for _, b := range bs {
		touch(b)
	}
	// What the library refuses, though this package does not, are faults in columns that nobody asked for.
	if want, err := slowDecode(value, h.o, kind); err == nil {
		h.compared++
		if d := differ(bs, want); d != "" {
			t.Fatalf("%s, in %x", d, value)
		}
	}
	for _, b := range bs {
		consume(t, b)
		b.Release()
	}
}

// consume does with a batch what its other readers do: the record of its keys, and the calibrated stream.
func consume(t testing.TB, b *Batch) {
	if rec := b.Record(); rec != nil {
		for _, c := range rec.Columns() {
			_ = c.String()
		}
		rec.Release()
	}
	if b.K > 0 && b.K < 64 {
		if _, err := EncodeCalibrated(b, make([]float32, b.N*b.K), CalibratedOptions{Calibrator: "c"}); err != nil {
			t.Fatal(err)
		}
	}
}

// hostileOptions are bounds that mutated messages can reach.
func hostileOptions(inflate bool) Options {
	return Options{
		Slices:          []string{"region", "tenant"},
		MaxMessageBytes: 1 << 20,
		MaxRows:         4096,
		MaxBatches:      64,
		Inflate:         inflate,
		MaxInflated:     1 << 20,
	}
}

// TestMutatedMessages decodes mutated messages, half of them mutated with the structure of the message in mind: none
// may panic, cost much time or memory, or give a row that the Arrow library reads otherwise. `make fuzz-messages` runs
// ten million.
func TestMutatedMessages(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	m := newMutator(seedMessages(t))
	of := []*hostile{newHostile(hostileOptions(true)), newHostile(hostileOptions(false))}
	r := rand.New(rand.NewPCG(1, uint64(*mutationSeed)))
	for i := range testsize.Short(*mutations/5, *mutations) {
		v := m.structured(r)
		if i%3 == 0 {
			v = m.bytes(r)
		}
		of[i/3%2].decode(t, v, Kind(r.IntN(4)/3))
	}
	for _, h := range of {
		t.Logf(
			"inflate %v: %d messages, %d accepted, %d of them compared with the Arrow library; "+
				"at most %d bytes allocated and %v a message",
			h.o.Inflate,
			h.decoded,
			h.accepted,
			h.compared,
			h.mostBytes,
			h.longest,
		)
		if h.accepted < h.decoded/50 || h.accepted > h.decoded*9/10 || h.compared < h.accepted/2 {
			t.Errorf("got %d accepted of %d and %d compared: the mutations test little", h.accepted, h.decoded,
				h.compared)
		}
	}
}

// TestTruncations cuts every seed at every length: no proper prefix may pass, except one that ends where
// a message does and has a record batch, which is a stream whose writer was not closed.
func TestTruncations(t *testing.T) {
	d := NewDecoder(Options{})
	for s, v := range seedMessages(t) {
		ends := messageEnds(t, v)
		for n := range len(v) {
			_, err := d.Decode(v[:n], testOrigin, Predictions)
			if err == nil && !ends[n] {
				t.Fatalf("seed %d cut at %d of %d bytes was accepted", s, n, len(v))
			}
		}
	}
}

func messageEnds(t *testing.T, v []byte) map[int]bool {
	ends := map[int]bool{}
	for rest := v; ; {
		_, next, end, _, err := wire.Next(rest)
		if err != nil {
			t.Fatal(err)
		}
		if end {
			return ends
		}
		rest = next
		ends[len(v)-len(rest)] = true
	}
}

// FuzzDecode runs best with -fuzzminimizetime 10x: pools and caches make its coverage vary, which the default
// minimiser spends a minute on each time.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, v := range seedMessages(f) {
		f.Add(v, uint8(0))
		f.Add(v, uint8(1))
		f.Add(mutate(r, v), uint8(0))
	}
	of := hostilePool()
	f.Fuzz(func(t *testing.T, value []byte, kind uint8) {
		h := of.Get().(*hostile)
		defer of.Put(h)
		h.decode(t, value, Kind(kind%2))
	})
}

// FuzzStructured lets the fuzzing engine choose the mutations of TestMutatedMessages: its input is read as their
// choices.
func FuzzStructured(f *testing.F) {
	m := newMutator(seedMessages(f))
	r := rand.New(rand.NewPCG(5, 6))
	for range 64 {
		choices := make([]byte, 8+r.IntN(64))
		for i := range choices {
			choices[i] = byte(r.Uint32())
		}
		f.Add(choices, uint8(r.IntN(2)))
	}
	of := hostilePool()
	f.Fuzz(func(t *testing.T, choices []byte, kind uint8) {
		h := of.Get().(*hostile)
		defer of.Put(h)
		h.decode(t, m.structured(&program{choices}), Kind(kind%2))
	})
}

// hostilePool has decoders for targets that the engine may call at once.
func hostilePool() *sync.Pool {
	return &sync.Pool{New: func() any { return newHostile(hostileOptions(true)) }}
}
