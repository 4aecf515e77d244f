package acc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// randSet returns a set of rows, of which some have a label; weights are 1 unless weighted.
func randSet(t testing.TB, rng *rand.Rand, k, rows int, weighted bool) *Set {
	t.Helper()
	s := must(New(Config{K: k}))
	s.CountClasses(rng.IntN(2) == 0)
	z, p := make([]float64, k), make([]float64, k)
	for range rows {
		for j := range z {
			z[j] = 4 * rng.NormFloat64()
		}
		r, _ := kernel.Logits(z, p)
		w := 1.0
		if weighted {
			w = .5 + rng.Float64()
		}
		if rng.IntN(4) > 0 {
			if err := s.Predict(r, w); err != nil {
				t.Fatal(err)
			}
		}
		if y := rng.IntN(k); rng.IntN(3) > 0 {
			truth := Truth{Class: y, NLL: kernel.NLL(r, z, y, false), Weight: w, Lag: rng.Int64N(1e12), Served: r.Conf}
			if err := s.Label(r, p, truth); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// shown is all that windows show of a set.
func shown(t testing.TB, s *Set) string {
	t.Helper()
	out := ""
	add := func(x ...any) { out += fmt.Sprintln(x...) }
	bins := func(g *Grid, m int) {
		wrong, right, err := g.BinsByOutcome(m)
		if err != nil {
			t.Fatal(err)
		}
		add(wrong, right)
	}
	add(s.SeenRows())
	if s.Seen != nil {
		add(s.Seen.MSP.Groups())
		bins(&s.Seen.MSP, 15)
		for _, g := range []*Grid{&s.Seen.Margin, &s.Seen.NegEnt} {
			for i, b := range must(g.Bins(SummaryBins)) {
				add(i, b.N)
			}
		}
	}
	add(s.LabelledRows())
	if l := s.Labelled; s.LabelledRows() > 0 {
		for _, g := range []*Grid{&l.MSP, &l.Served} {
			bins(g, 15)
			bins(g, CoarseBins)
			add(g.Total())
			add(g.AURC(), g.Accuracy(), g.MeanConfidence(), must(g.CDFCounts(metric.CDFBins)))
		}
		add(l.Soft.Sums())
		add(l.ClassWise.ECE())
		add(l.Scores, l.Lag.Mean(), l.Lag.Quantile(.5), l.Lag.Quantile(.99))
	}
	if c := s.Classes; c != nil {
		if n, w := c.Total(); n > 0 {
			add(n, w)
		}
		for cell := range c.Cells() {
			if cell.Seen.N > 0 {
				add(cell.Class, cell.Band, cell.Seen)
			}
		}
	}
	return out
}

// grouped returns a set as a summary that is not fine has it: with groups of cells where there are many rows.
func grouped(s *Set) *Set {
	if n, _ := s.SeenRows(); max(n, s.LabelledRows()) <= groupRows {
		return s
	}
	regroup := func(g *Grid) {
		out := Grid{groups: groupsOfCells(), n: g.n, w: g.w, t: table[uint16]{space: gridKeys}}
		for i, key := range g.t.keys {
			e := out.t.at(2*out.groups.of[key/2] + key&1)
			for j := range e {
				e[j] += g.t.ents[i][j]
			}
		}
		*g = out
	}
	if s.Seen != nil {
		regroup(&s.Seen.MSP)
	}
	if s.Labelled != nil {
		regroup(&s.Labelled.MSP)
		regroup(&s.Labelled.Served)
	}
	return s
}

// TestGroupsOfCells: no edge of bins that windows show divides a group, and the area under the risk-coverage curve
// of n rows changes by less than 1/n.
func TestGroupsOfCells(t *testing.T) {
	g := groupsOfCells()
	for cell := 1; cell < cellCount; cell++ {
		for m := 1; m <= SummaryBins; m++ {
			if GridCells%m != 0 || g.of[cell] != g.of[cell-1] {
				continue
			}
			if binOf(cell, m) != binOf(cell-1, m) && (m <= CoarseBins || m == SummaryBins) ||
				cdfBinOf(cell, m) != cdfBinOf(cell-1, m) && m == metric.CDFBins {
				t.Fatalf("cells %d and %d are one group, and two of %d bins", cell-1, cell, m)
			}
		}
	}
	for _, n := range []int{groupRows + 1, 10_000} {
		for seed := range uint64(5) {
			for _, sharp := range []float64{.3, 1, 3} {
				rng, s := rand.New(rand.NewPCG(seed, 5)), must(New(Config{K: 3}))
				z, p := make([]float64, 3), make([]float64, 3)
				for range n {
					for j := range z {
						z[j] = 4 * sharp * rng.NormFloat64()
					}
					r, _ := kernel.Logits(z, p)
					y, u := 0, rng.Float64()
					for u -= p[0]; u > 0 && y < 2; u -= p[y] {
						y++
					}
					truth := Truth{Class: y, NLL: kernel.NLL(r, z, y, false), Weight: 1, Served: math.NaN()}
					if err := s.Label(r, p, truth); err != nil {
						t.Fatal(err)
					}
				}
				want := s.Labelled.MSP.AURC()
				if got := grouped(s).Labelled.MSP.AURC(); math.Abs(got-want) > 1/float64(n) || got == want {
					t.Errorf("%d rows: AURC %v, want %v", n, got, want)
				}
			}
		}
	}
}

// TestSummaryIsTheSet compares what a window shows of packed sums with what it shows of a set of groups of cells, bit
// for bit but the class-wise ECE, whatever the parts in which rows came, and the bytes after a round trip.
func TestSummaryIsTheSet(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		k := 2 + rng.IntN(30)
		sum, total := must(NewSummary(Config{K: k}, seed%4 == 1)), must(New(Config{K: k}))
		other := must(NewSummary(Config{K: k}, seed%8 == 1)) // it also reads what a fine one has packed
		var p, q Packed
		for range 1 + rng.IntN(12) {
			part := randSet(t, rng, k, rng.IntN(1+rng.IntN(400)), seed%3 == 0)
			mustMerge(t, total, part)
			to := &p
			if rng.IntN(3) == 0 {
				to = &q
			}
			if err := sum.Pack(to, func(s *Summary) error { return s.Add(part) }); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(3) == 0 {
				if err := sum.Join(to); err != nil || to.Late() != 0 {
					t.Fatalf("seed %d: %d late bytes after Join (%v)", seed, to.Late(), err)
				}
			}
		}
		if err := sum.Pack(&p, func(s *Summary) error { return s.Unpack(&q) }); err != nil {
			t.Fatal(err)
		}
		data := p.AppendBinary(nil)
		r := binenc.NewReader(data)
		back, err := other.Restore(&r)
		if err != nil || r.Close() != nil || !bytes.Equal(back.AppendBinary(nil), data) {
			t.Fatalf("seed %d: a round trip: %v, %v", seed, err, r.Err())
		}
		sum.Reset()
		if err := sum.Unpack(&back); err != nil {
			t.Fatal(err)
		}
		if seed%4 != 1 {
			total = grouped(total)
		}
		if got, want := shown(t, sum.AsSet()), shown(t, total); got != want {
			t.Fatalf("seed %d: %s\nwant %s", seed, got, want)
		}
	}
}

// TestFineSummary has every bin, and refuses what one that is not fine has packed.
func TestFineSummary(t *testing.T) {
	part := randSet(t, rand.New(rand.NewPCG(3, 1)), 3, 500, false)
	fine, coarse := must(NewSummary(Config{K: 3}, true)), must(NewSummary(Config{K: 3}, false))
	for _, s := range []*Summary{fine, coarse} {
		var p Packed
		if err := s.Pack(&p, func(s *Summary) error { return s.Add(part) }); err != nil {
			t.Fatal(err)
		}
		fine.Reset()
		if err := fine.Unpack(&p); s == coarse && !errors.Is(err, ErrCoarse) || s == fine && err != nil {
			t.Fatal(err)
		}
		if s == coarse {
			continue
		}
		got, want := must(fine.AsSet().Labelled.MSP.Bins(400)), must(part.Labelled.MSP.Bins(400))
		if !reflect.DeepEqual(got, want) {
			t.Error("bins of a fine summary differ from the set's")
		}
	}
	parts := coarse.labelled.parts
	for cell := 1; cell < cellCount; cell++ { // parts have the edges of all bins
		for m := 1; m <= CoarseBins; m++ {
			edge := GridCells%m == 0 && binOf(cell, m) != binOf(cell-1, m)
			if edge && parts[cell] == parts[cell-1] {
				t.Fatalf("cells %d and %d are one part, and two of %d bins", cell-1, cell, m)
			}
		}
	}
}

// TestSummaryOfLabels takes the labelled rows only.
func TestSummaryOfLabels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	part, sum := randSet(t, rng, 5, 200, false), must(NewSummary(Config{K: 5}, false))
	var p Packed
	if err := sum.Pack(&p, func(s *Summary) error { return s.AddLabelled(part) }); err != nil {
		t.Fatal(err)
	}
	sum.Reset()
	if err := sum.Unpack(&p); err != nil {
		t.Fatal(err)
	}
	part.Seen, part.Classes = nil, nil
	if got, want := shown(t, sum.AsSet()), shown(t, grouped(part)); got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
}

// TestSummaryRefuses: damaged bytes are an error and nothing else; what has no room is left out.
func TestSummaryRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	part, sum := randSet(t, rng, 4, 60, false), must(NewSummary(Config{K: 4}, false))
	var p Packed
	if !p.Empty() {
		t.Error("the zero value has rows")
	}
	add := func(s *Summary) error { return s.Add(part) }
	if err := sum.Pack(&p, add); err != nil {
		t.Fatal(err)
	}
	whole := p.AppendBinary(nil)
	for range 20_000 {
		data := bytes.Clone(whole[:len(whole)-rng.IntN(2)*rng.IntN(len(whole))])
		for range rng.IntN(4) {
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		}
		r := binenc.NewReader(data)
		if _, err := sum.Restore(&r); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrOverflow) {
			t.Fatal(err)
		}
	}
	heavy := must(New(Config{K: 4}))
	r, _ := kernel.Logits([]float64{1, 2, 3, 4}, make([]float64, 4))
	if err := heavy.Predict(r, maxWeight-1); err != nil {
		t.Fatal(err)
	}
	before := must(New(Config{K: 4}))
	mustMerge(t, before, part)
	if err := sum.Pack(&p, func(s *Summary) error { return s.Add(heavy) }); !errors.Is(err, ErrOverflow) {
		t.Errorf("a set without room: %v", err)
	}
	sum.Reset()
	if err := sum.Unpack(&p); err != nil || shown(t, sum.AsSet()) != shown(t, grouped(before)) {
		t.Errorf("after an overflow the sums have changed (%v)", err)
	}
	if err := sum.Add(must(New(Config{K: 5}))); !errors.Is(err, ErrShape) {
		t.Errorf("a set of another shape: %v", err)
	}
}
