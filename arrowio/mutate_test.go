package arrowio

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/plumbline/plumbline/arrowio/wire"
)

var mutations = flag.Int("mutations", 40_000, "number of mutated messages that TestMutatedMessages decodes")

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

// decodeHostile decodes value, checks the error and touches the batches. It says whether it was accepted.
func decodeHostile(t testing.TB, d *Decoder, value []byte, kind Kind) bool {
	bs, err := d.Decode(value, testOrigin, kind)
	if err != nil {
		var de *DecodeError
		if !errors.As(err, &de) || !reasons[de.Reason] || len(de.Detail) > 240 || bs != nil {
			t.Fatalf("got %d batches and error %v for %x", len(bs), err, value)
		}
		return false
	}
	for _, b := range bs {
		touch(b)
		if rec := b.Record(); rec != nil {
			for _, c := range rec.Columns() {
				_ = c.String()
			}
			rec.Release()
		}
		if b.K > 0 && b.K < 64 {
			if _, err := EncodeCalibrated(b, make([]float32, b.N*b.K), false, "c"); err != nil {
				t.Fatal(err)
			}
		}
		b.Release()
	}
	return true
}

// lies are lengths that make a trusting reader allocate or index wildly.
var lies = []uint64{0, 1, 7, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 8}

// mutate damages a message in one to four places.
func mutate(r *rand.Rand, valid []byte) []byte {
	v := append([]byte(nil), valid...)
	for range 1 + r.IntN(4) {
		if len(v) < 16 {
			return v
		}
		// Most of what can go wrong is in the metadata, at the front.
		at := r.IntN(len(v))
		if r.IntN(2) == 0 {
			at = r.IntN(min(len(v), 2048))
		}
		switch r.IntN(8) {
		case 0:
			v = v[:at]
		case 1, 2:
			v[at] ^= 1 << r.IntN(8)
		case 3:
			v[at] = byte(r.Uint32())
		case 4:
			at = min(at&^3, len(v)-4)
			binary.LittleEndian.PutUint32(v[at:], uint32(lies[r.IntN(len(lies))]))
		case 5:
			at = min(at&^7, len(v)-8)
			binary.LittleEndian.PutUint64(v[at:], lies[r.IntN(len(lies))])
		case 6:
			at = min(at&^7, len(v)-8)
			binary.LittleEndian.PutUint64(v[at:], binary.LittleEndian.Uint64(v[at:])+uint64(r.IntN(17)-8))
		default:
			to, n := r.IntN(len(v)), r.IntN(64)
			copy(v[at:], v[to:min(len(v), to+n)])
		}
	}
	return v
}

func TestMutatedMessages(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(512 << 20))
	o := Options{Slices: []string{"region", "tenant"}, MaxMessageBytes: 1 << 20, MaxRows: 4096, Inflate: true, MaxInflated: 1 << 20}
	plain := o
	plain.Inflate = false
	decoders := []*Decoder{NewDecoder(o), NewDecoder(plain)}
	seeds := seedMessages(t)
	r := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	accepted := 0
	for i := range *mutations {
		v := mutate(r, seeds[r.IntN(len(seeds))])
		if decodeHostile(t, decoders[i%2], v, Kind(r.IntN(2))) {
			accepted++
		}
	}
	runtime.ReadMemStats(&after)
	// Seeds have at most 20 KiB and 64 rows; a trusting reader asks for up to gigabytes on one of them.
	perMessage := (after.TotalAlloc - before.TotalAlloc) / uint64(*mutations)
	t.Logf("%d of %d accepted, %d bytes allocated a message, %d MiB from the system", accepted, *mutations, perMessage, after.Sys>>20)
	if perMessage > 1<<20 {
		t.Errorf("got %d bytes allocated a message, want at most 1 MiB", perMessage)
	}
	if accepted == 0 || accepted == *mutations {
		t.Errorf("got %d of %d accepted: the mutations test nothing", accepted, *mutations)
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
	o := Options{Slices: []string{"region", "tenant"}, MaxMessageBytes: 1 << 20, MaxRows: 1 << 14, Inflate: true, MaxInflated: 1 << 20}
	f.Fuzz(func(t *testing.T, value []byte, kind uint8) {
		decodeHostile(t, NewDecoder(o), value, Kind(kind%2))
	})
}
