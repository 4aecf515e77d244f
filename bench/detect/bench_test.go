package main

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/arrowio/npy"
)

func TestSummarise(t *testing.T) {
	for _, c := range []struct {
		first  []int
		change int
		want   summary
	}{
		{[]int{150, 120, 180}, 100, summary{crossed: 1, median: 50}},
		{[]int{150, -1, -1}, 100, summary{crossed: 1. / 3, median: -1}},
		{[]int{150, 160, -1}, 100, summary{crossed: 2. / 3, median: 60}},
		{[]int{50, 160, 170}, 100, summary{crossed: 2. / 3, early: 1. / 3, median: 70}},
		{[]int{-1}, 0, summary{median: -1}},
	} {
		if got := summarise(c.first, c.change); got != c.want {
			t.Errorf("%v, change at %d: got %+v, want %+v", c.first, c.change, got, c.want)
		}
	}
	if got := jointly([]int{-1, 5, 7, -1}, []int{3, -1, 6, -1}); !slices.Equal(got, []int{3, 5, 6, -1}) {
		t.Errorf("jointly: got %v", got)
	}
}

// TestJointLevels: tests that share an α must have been noted at their parts of every level at which they are reported.
func TestJointLevels(t *testing.T) {
	for _, c := range append(slices.Clone(calmColumns), column{"alarm + accuracy", 3.15e6}) {
		parts := joint[c.name]
		if parts == nil {
			parts = []shareTest{{c.name, 1}}
		}
		for _, p := range parts {
			if !slices.Contains(levels, p.of*c.level) {
				t.Errorf("%v: levels %v lack %v", c, levels, p.of*c.level)
			}
		}
	}
	for name, parts := range joint {
		var all float64
		for _, p := range parts {
			all += 1 / p.of
		}
		if all != 1 {
			t.Errorf("%s: its tests have %v of α", name, all)
		}
	}
	if !slices.IsSorted(levels) {
		t.Errorf("levels %v do not rise", levels)
	}
}

// TestPlaces: every stream that the table of places names is drawn once, and changes what it says.
func TestPlaces(t *testing.T) {
	s := toyScores(3000, 5)
	for _, c := range append([]string{""}, corruptions...) {
		name := "resnet20"
		if c != "" {
			name += "_" + c
		}
		s.z[name] = s.z["toy"]
	}
	p := s.calibrated()
	streams := map[string]*stream{}
	all := append(delays(s), where(s)...)
	for i := range all {
		if streams[all[i].name] != nil {
			t.Errorf("two streams %q", all[i].name)
		}
		streams[all[i].name] = &all[i]
	}
	spots := places(p)
	if len(spots) < 3+len(corruptions)+len(otherShares) {
		t.Fatalf("places %v", spots)
	}
	for _, w := range spots {
		if streams[w.name] == nil {
			t.Fatalf("no stream %q", w.name)
		}
	}
	// The fullest bin is right 20 % more seldom after the change, as often before.
	most := 0
	for j := range bins {
		if p.share(j) > p.share(most) {
			most = j
		}
	}
	rows := streams[binName(most)].rows(1, nil)
	for part, want := range map[int]float64{0: 0, 1: -binError} {
		var n, gap float64
		for _, r := range rows[part*changeAt : part*(len(rows)-changeAt)+changeAt] {
			if binOf(r.c) != most {
				continue
			}
			n, gap = n+1, gap-r.c
			if r.right {
				gap++
			}
		}
		if !(math.Abs(gap/n-want) <= 4*math.Sqrt(.25/n)) {
			t.Errorf("part %d: gap %v of %v rows, want %v", part, gap/n, n, want)
		}
	}
}

// toy is a stream of 2,000 rows that are right with probability c + bias.
func toy(bias float64) stream {
	return stream{group: "toy", name: "toy", n: 2000, draw: func(rng *rand.Rand, _ int) drawn {
		c := float64(float32(1 - .5*rng.Float64()))
		return drawn{c, rng.Float64() < c+bias}
	}}
}

// TestRuns: a run is the same on any core, a calibrated one crosses nothing, one off by .3 crosses all levels at once
// in order.
func TestRuns(t *testing.T) {
	few := tests[:2]
	for bias, crosses := range map[float64]bool{0: false, -.3: true} {
		s := toy(bias)
		a, err := runs(&s, few, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		b, err := runs(&s, few, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		for k := range few {
			for l := range levels {
				if !slices.Equal(a[k][l], b[k][l]) {
					t.Errorf("bias %v, %s: two measurements differ", bias, few[k].name)
				}
				if len(a[k][l]) != 4 {
					t.Fatalf("bias %v, %s: %d runs, want 4", bias, few[k].name, len(a[k][l]))
				}
				for run, at := range a[k][l] {
					if (at >= 0) != crosses || l > 0 && at < a[k][l-1][run] {
						t.Errorf("bias %v, %s, run %d: first crossings %v, %v", bias, few[k].name, run,
							a[k][max(l-1, 0)][run], at)
					}
				}
			}
		}
	}
}

// TestExport: peers read the rows that the detectors see.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	s := toy(0)
	e, err := export(dir, &s, 2)
	if err != nil {
		t.Fatal(err)
	}
	c, err := npy.ReadFile(filepath.Join(dir, e.Confidence))
	if err != nil {
		t.Fatal(err)
	}
	a, err := npy.ReadFile(filepath.Join(dir, e.Right))
	if err != nil {
		t.Fatal(err)
	}
	rows := s.rows(1, nil)
	if len(rows) != s.n || len(c.F32) != 2*s.n || len(a.Int) != 2*s.n {
		t.Fatalf("%d rows a run, %d and %d in the files; want %d and %d", len(rows), len(c.F32), len(a.Int), s.n, 2*s.n)
	}
	for i, r := range rows {
		if float64(c.F32[s.n+i]) != r.c || (a.Int[s.n+i] != 0) != r.right {
			t.Fatalf("row %d of run 1 is %v, %d in the files, %+v in the run", i, c.F32[s.n+i], a.Int[s.n+i], r)
		}
	}
}

// TestLateLabels: every row arrives once; matured ones in the order of issue; complaints come first.
func TestLateLabels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]drawn, 3000)
	for i := range rows {
		rows[i] = drawn{float64(i), i%2 == 0}
	}
	out := delayed(func(_ *rand.Rand, _ drawn) float64 { return longestLag })(rng, rows)
	if !slices.Equal(out, rows) {
		t.Error("equal lags changed the order")
	}
	out = delayed(func(rng *rand.Rand, r drawn) float64 {
		if r.right {
			return longestLag
		}
		return 0
	})(rng, rows)
	if wrong := slices.IndexFunc(out, func(r drawn) bool { return r.right }); wrong != len(rows)/2 {
		t.Errorf("first right row arrives at %d, want after the %d wrong ones", wrong, len(rows)/2)
	}
	slices.SortFunc(out, func(a, b drawn) int { return int(a.c - b.c) })
	if !slices.Equal(out, rows) {
		t.Error("rows were lost or doubled")
	}
}

func TestKL(t *testing.T) {
	if got, want := kl(.8, .9), .8*math.Log(.8/.9)+.2*math.Log(2); math.Abs(got-want) > 1e-12 {
		t.Errorf("kl(.8, .9) is %v, want %v", got, want)
	}
	if got := kl(1, .5); math.Abs(got-math.Ln2) > 1e-12 {
		t.Errorf("kl(1, .5) is %v, want ln 2", got)
	}
}
