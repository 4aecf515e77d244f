package fixedpoint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFindKeys compares every path with the definition, on and beside the edges of bins too.
func TestFindKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range 1000 {
		m := []int{1, 2, 10, 15, 3600}[i%5]
		slack := 2.2e-6 * float64(m)
		if m == 1 {
			slack = 1
		}
		var l Large
		var r ScaledRows
		var want []uint32
		var sums []int64
		for range rng.IntN(12) {
			scale := math.Exp(-3 * rng.Float64())
			for range rng.IntN(20) {
				p := rng.Float64()
				switch rng.IntN(4) {
				case 0:
					p = float64(1+rng.IntN(m)) / float64(m) * (1 + 5e-6*(rng.Float64()-.5))
				case 1:
					p = 1
				}
				v, class := float32(p/scale), uint32(rng.IntN(1000))
				l.V, l.Class = append(l.V, v), append(l.Class, class)
				p = float64(v) * scale
				if p > 1 {
					p = 1
				}
				sums = append(sums, int64(math.RoundToEven(p*(1<<32))))
				x := p * float64(m)
				key := class*uint32(m+1) + uint32(min(x, float64(m)-.5))
				near := math.Round(x)
				if near < float64(m) && math.Abs(x-near) <= slack || m == 1 {
					key = NoKey
				}
				want = append(want, key)
			}
			l.End, r.Scale = append(l.End, len(l.V)), append(r.Scale, scale)
		}
		for name, use := range scaledPaths() {
			restore := use()
			l.FindKeys(&r, m, slack)
			restore()
			if !slices.Equal(l.Key, want) || !slices.Equal(l.Sum, sums) {
				t.Fatalf("%s, %d bins: got %v %v, want %v %v", name, m, l.Key, l.Sum, want, sums)
			}
		}
	}
}

// TestAddEntries compares every path with a map.
func TestAddEntries(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		const space = 60
		places := make([]uint32, space)
		used := 1 + rng.IntN(30)
		for i, key := range rng.Perm(space)[:used] {
			places[key] = uint32(i + 1)
		}
		n := rng.IntN(40)
		keys, sums := make([]uint32, n), make([]int64, n)
		want, stop := map[uint32][4]int64{}, n
		for x := range keys {
			keys[x], sums[x] = uint32(rng.IntN(space)), rng.Int64N(1<<40)
			if places[keys[x]] == 0 && rng.IntN(10) > 0 {
				keys[x] = uint32(slices.Index(places, 1))
			}
			if rng.IntN(50) == 0 {
				keys[x] = NoKey
			}
			if stop == n && (keys[x] == NoKey || places[keys[x]] == 0) {
				stop = x
			}
			if stop == n {
				e := want[keys[x]]
				want[keys[x]] = [4]int64{e[0] + 1, e[1] + 77, e[2] + sums[x], 0}
			}
		}
		for name, use := range scaledPaths() {
			restore := use()
			entries := make([][4]int64, used)
			done := AddEntries(entries, places, keys, sums, 77)
			restore()
			if done != stop {
				t.Fatalf("%s: got %d done, want %d", name, done, stop)
			}
			for key, place := range places {
				if place != 0 && entries[place-1] != want[uint32(key)] {
					t.Fatalf("%s, key %d: got %v, want %v", name, key, entries[place-1], want[uint32(key)])
				}
			}
		}
	}
}

// TestAddCells compares every path with a map.
func TestAddCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 500 {
		const space, n = 60, 50
		places := make([]uint16, space)
		used := 1 + rng.IntN(space)
		for i, key := range rng.Perm(space)[:used] {
			places[key] = uint16(i + 1)
		}
		var c CellRows
		for range n {
			key, hit := uint16(2*rng.IntN(space/2)), uint16(rng.IntN(2))
			c.Key, c.Hit = append(c.Key, key), append(c.Hit, hit)
			c.W = append(c.W, rng.Int64N(1<<40))
			c.WC = append(c.WC, rng.Int64N(1<<40))
			c.WC2 = append(c.WC2, rng.Int64N(1<<40))
		}
		outcome := uint16(i % 2)
		var rows []int32
		want, stop := map[uint16][4]int64{}, -1
		for x := range rng.IntN(2 * n) {
			row := int32(rng.IntN(n))
			rows = append(rows, row)
			key := c.Key[row]
			if outcome == 1 {
				key += c.Hit[row]
			}
			if places[key] == 0 && stop < 0 {
				stop = x
			}
			if stop < 0 {
				e := want[key]
				want[key] = [4]int64{e[0] + 1, e[1] + c.W[row], e[2] + c.WC[row], e[3] + c.WC2[row]}
			}
		}
		if stop < 0 {
			stop = len(rows)
		}
		for name, use := range scaledPaths() {
			restore := use()
			entries := make([][4]int64, used)
			done := AddCells(entries, places, &c, rows, outcome)
			restore()
			if done != stop {
				t.Fatalf("%s: got %d done, want %d", name, done, stop)
			}
			for key, place := range places {
				if place != 0 && entries[place-1] != want[uint16(key)] {
					t.Fatalf("%s, key %d: got %v, want %v", name, key, entries[place-1], want[uint16(key)])
				}
			}
		}
	}
}
