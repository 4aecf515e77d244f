package stage

import (
	"bytes"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// randPane returns a pane with a few rows; the calibrated ones may be missing or others than the raw ones.
func randPane(rng *rand.Rand, end int64) paneBins {
	p, bins := paneBins{end: end}, make([]metric.Bin, 15)
	for range 1 + rng.IntN(3) {
		b := &bins[rng.IntN(len(bins))]
		b.N, b.W = b.N+1, b.W+1
		b.SumC += float64(rng.Uint32()) / (1 << 32)
		b.SumA += float64(rng.IntN(2))
		p.rawN++
	}
	switch rng.IntN(4) {
	case 0:
		p.pack(bins, nil)
	case 1:
		p.calN = p.rawN
		p.pack(bins, bins)
	default:
		cal := append([]metric.Bin(nil), bins...)
		for i := range cal {
			cal[i].SumC /= 2
		}
		p.calN = p.rawN
		p.pack(bins, cal)
	}
	return p
}

// plainLast is what Last says of panes that are kept one by one.
func plainLast(panes []paneBins, signal string, rows int64) (bins []metric.Bin, n int64) {
	for i := len(panes) - 1; i >= 0 && n < rows; i-- {
		packed, m := panes[i].of(signal)
		bins, n = plusPacked(bins, packed), n+m
	}
	return bins, n
}

// plainAfter is what After says of panes that are kept one by one.
func plainAfter(panes []paneBins, signal string, from int64) (bins []metric.Bin, n int64) {
	for i := len(panes) - 1; i >= 0 && (panes[i].end > from || i == len(panes)-1); i-- {
		packed, m := panes[i].of(signal)
		bins, n = plusPacked(bins, packed), n+m
	}
	return bins, n
}

// plainForget is what forget leaves of panes that are kept one by one.
func plainForget(panes []paneBins, keep int64) []paneBins {
	var raw, cal int64
	for i := len(panes) - 1; i > 0; i-- {
		raw, cal = raw+panes[i].rawN, cal+panes[i].calN
		if raw >= keep && cal >= keep {
			return panes[i:]
		}
	}
	return panes
}

// TestRecentInBlocks compares panes in blocks with panes that are kept one by one: what is read of them, what is
// forgotten, and the bytes of checkpoints.
func TestRecentInBlocks(t *testing.T) {
	var summed int
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r Recent
		var plain []paneBins
		keep, end := 1+rng.Int64N(300), int64(0)
		for range 400 {
			end += 10 * (1 + rng.Int64N(3))
			p := randPane(rng, end)
			r.push(p)
			r.forget(keep)
			plain = plainForget(append(plain, p), keep)
			signal := []string{SignalRaw, SignalCalibrated}[rng.IntN(2)]
			rows, from := rng.Int64N(2*keep), end-rng.Int64N(4000)
			for _, rows := range []int64{keep, 1 + keep/3, rows} { // those of the first two are asked for at each pane
				got, n := r.Last(signal, rows)
				if want, m := plainLast(plain, signal, rows); n != m || !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d: the latest %d rows: %d %v, want %d %v", seed, rows, n, got, m, want)
				}
			}
			summed += len(r.sums)
			got, n, earlier := r.After(signal, from)
			if want, m := plainAfter(plain, signal, from); n != m || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: after %d: %d %v, want %d %v", seed, from, n, got, m, want)
			}
			if want := len(plain) > 1 && plain[0].end <= from; earlier != want {
				t.Fatalf("seed %d: after %d: an earlier pane is kept: %v, want %v", seed, from, earlier, want)
			}
		}
		bytesOf := func(panes []paneBins) []byte { return (&Recent{panes: panes}).Append(nil) }
		state := r.Append(nil)
		if !bytes.Equal(state, bytesOf(plain)) {
			t.Fatalf("seed %d: another state", seed)
		}
		var back Recent
		in := binenc.NewReader(state)
		if back.Restore(&in); in.Close() != nil || !bytes.Equal(back.Append(nil), state) {
			t.Fatalf("seed %d: another state after a restart (%v)", seed, in.Err())
		}
	}
	if summed < 10_000 {
		t.Errorf("%d sums were kept from pane to pane", summed)
	}
}

// TestManySumsOfRecent: each rule asks for a number of rows of its own, at each pane. Sums are kept for as many as
// there may be, also where there are more, and for those that are asked for now.
func TestManySumsOfRecent(t *testing.T) {
	rng, r := rand.New(rand.NewPCG(7, 1)), Recent{}
	var plain []paneBins
	ask := func(from, to int64) (made int) { // asks for numbers of rows, and returns how many sums were made anew
		p := randPane(rng, 10*int64(1+len(plain)))
		r.push(p)
		plain = append(plain, p)
		kept := map[*metric.Bin]bool{}
		for i := range r.sums {
			kept[&r.sums[i].bins[0]] = true
		}
		for rows := from; rows < to; rows++ {
			got, n := r.Last(SignalRaw, 10*rows)
			if want, m := plainLast(plain, SignalRaw, 10*rows); n != m || !reflect.DeepEqual(got, want) {
				t.Fatalf("%d rows: %d %v, want %d %v", 10*rows, n, got, m, want)
			}
		}
		for i := range r.sums {
			if !kept[&r.sums[i].bins[0]] {
				made++
			}
		}
		return made
	}
	for _, c := range []struct {
		name     string
		from, to int64
		made     int // at most
	}{
		{"a few", 1, 9, 8},
		{"as many as are kept", 1, 1 + recentSums, recentSums - 8},
		{"more", 1, 1 + 2*recentSums, 0},
		{"others", 100, 100 + recentSums, recentSums},
	} {
		made := 0
		for range 10 * panesOfBlock {
			made += ask(c.from, c.to)
		}
		if most := int(min(recentSums, c.to-c.from)); made > c.made || len(r.sums) != most {
			t.Errorf("%s: %d sums were made, want at most %d; %d are kept, want %d", c.name, made, c.made, len(r.sums),
				most)
		}
	}
}

// TestBinsOfCheckpoints compares what checkpoints have of packed bins with a plain encoding, and what is read back, of
// weights and sums of every kind.
func TestBinsOfCheckpoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	odd := []float64{0, math.Copysign(0, -1), .5, 1, 3, math.Pi, 1 << 32, 1 << 53, 1e300, -1, 1.0 / (1 << 32),
		1.0 / (1 << 33)}
	for range 20_000 {
		bins, plain := make([]metric.Bin, 1+rng.IntN(20)), []byte(nil)
		plain = binenc.AppendUvarint(plain, uint64(len(bins)))
		skip := uint64(0)
		for i := range bins {
			if skip++; rng.IntN(3) > 0 {
				continue
			}
			b := &bins[i]
			b.N = []int64{0, 1, 1, 2, 1000, -1, math.MaxInt64}[rng.IntN(7)]
			if b.W = float64(b.N); rng.IntN(4) == 0 {
				b.W = odd[rng.IntN(len(odd))]
			}
			if b.SumA = float64(rng.IntN(3)); rng.IntN(8) == 0 {
				b.SumA = odd[rng.IntN(len(odd))]
			}
			if b.SumC = float64(rng.Uint64N(1<<32+1)) / (1 << 32); rng.IntN(3) == 0 {
				b.SumC = odd[rng.IntN(len(odd))]
			}
			if *b == (metric.Bin{}) {
				*b = metric.Bin{} // a negative zero is not kept there
				continue
			}
			plain = binenc.AppendVarint(binenc.AppendUvarint(plain, skip-1), b.N)
			for _, x := range []float64{b.W, b.SumC, b.SumA} {
				plain = binenc.AppendUvarint(plain, bits.ReverseBytes64(math.Float64bits(x)))
			}
			skip = 0
		}
		data := packBins(nil, bins)
		if got := appendBins(nil, data); !bytes.Equal(got, plain) {
			t.Fatalf("%v: % x in a checkpoint, want % x", bins, got, plain)
		}
		if got := plusPacked(nil, data); !reflect.DeepEqual(got, bins) {
			t.Fatalf("%v, want %v", got, bins)
		}
		r := binenc.NewReader(plain)
		if got := readBins(&r); r.Close() != nil || !bytes.Equal(packBins(nil, got), data) {
			t.Fatalf("%v from a checkpoint, want %v (%v)", got, bins, r.Err())
		}
	}
}

// TestRecentIsSmall: a pane of a row has 20 bytes at most.
func TestRecentIsSmall(t *testing.T) {
	rng, r := rand.New(rand.NewPCG(1, 1)), Recent{}
	const panes = 1600
	for i := range int64(panes) {
		bins := make([]metric.Bin, 15)
		bins[rng.IntN(15)] = metric.Bin{N: 1, W: 1, SumC: float64(rng.Uint32()) / (1 << 32), SumA: 1}
		p := paneBins{end: 1_700_000_000_000_000_000 + i*60_000_000_000, rawN: 1, calN: 1}
		cal := append([]metric.Bin(nil), bins...)
		for j := range cal {
			cal[j].SumC = math.Floor(cal[j].SumC*(1<<31)) / (1 << 32)
		}
		p.pack(bins, cal)
		r.push(p)
	}
	n := 0
	for _, b := range r.blocks {
		n += cap(b.data)
	}
	if each := n / panes; each > 20 {
		t.Errorf("%d bytes a pane", each)
	} else {
		t.Logf("%d bytes a pane", each)
	}
}
