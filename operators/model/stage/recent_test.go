package stage

import (
	"bytes"
	"math"
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
			got, n := r.Last(signal, rows)
			if want, m := plainLast(plain, signal, rows); n != m || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: the latest %d rows: %d %v, want %d %v", seed, rows, n, got, m, want)
			}
			got, n = r.After(signal, from)
			if want, m := plainAfter(plain, signal, from); n != m || !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: after %d: %d %v, want %d %v", seed, from, n, got, m, want)
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
}

// TestRecentIsSmall: a pane of a row has 60 bytes at most.
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
	if each := n / panes; each > 60 {
		t.Errorf("%d bytes a pane", each)
	} else {
		t.Logf("%d bytes a pane", each)
	}
}
