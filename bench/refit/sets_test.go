package main

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/realdata"
)

// toySource has rows whose first class is right, with logits that say so.
func toySource(name string, n int) *source {
	s := &source{name: name, k: 3}
	for i := range n {
		s.z = append(s.z, float32(i), 0, 0)
		s.labels = append(s.labels, int32(i%3))
	}
	return s
}

func TestMix(t *testing.T) {
	a, b := toySource("a", 50), toySource("b", 50)
	for i := range b.z {
		b.z[i] = -1
	}
	m := mix{"m", 1, 200, false, []*source{a, b}, parts(0, 1, 0, 1)()}
	s := m.streamOf()
	if s.rows() != 200 || len(s.z) != 600 || !slices.Equal(s.changes, []int{50, 100, 150}) || !s.drifting {
		t.Fatalf("%d rows, %d scores, changes %v", s.rows(), len(s.z), s.changes)
	}
	seen := map[float32]int{}
	for i := range 200 {
		z := s.z[3*i : 3*i+3]
		if second := i/50%2 == 1; (z[1] == -1) != second {
			t.Fatalf("row %d is of the wrong source: %v", i, z)
		}
		if z[1] == 0 {
			seen[z[0]]++
			if s.labels[i] != int32(z[0])%3 {
				t.Fatalf("row %d has the label of another row", i)
			}
		}
	}
	if len(seen) != 50 || seen[7] != 2 {
		t.Errorf("%d rows of the first source were seen, row 7 %d times; want 50, twice", len(seen), seen[7])
	}
	of := a.of(1)
	if of.rows() != 17 || of.z[0] != 1 || slices.Contains(of.labels, 2) {
		t.Errorf("rows of class 1: %d, labels %v", of.rows(), of.labels)
	}
	stays, which, last := 0, atRandom(3, 20)(), 0
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		j := which(r, 0)
		stays += step(j == last)
		last = j
	}
	if stays < 9350 || stays > 9650 { // 500 changes, ± 7 standard deviations
		t.Errorf("stayed with its source %d times of 10000, want 9500", stays)
	}
}

// TestHeadLearns: a head fitted on rows that a line separates has them right, and keeps its numbers on others.
func TestHeadLearns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	x, y := make([][]float32, 400), make([]int32, 400)
	for i := range x {
		a, b := r.NormFloat64(), r.NormFloat64()
		x[i] = []float32{float32(100 + 3*a), float32(b)}
		y[i] = int32(step(a+2*b > 0))
	}
	at := func(i int) []float32 { return x[i] }
	h := newHead(2, 2)
	h.standardise(300, at)
	h.fit(300, at, y)
	right, z := 0, make([]float64, 2)
	for i := 300; i < 400; i++ {
		h.logits(z, x[i])
		right += step((z[1] > z[0]) == (y[i] == 1))
	}
	if right < 95 {
		t.Errorf("right on %d of 100 rows", right)
	}
	if h.logits(z, []float32{1e30, 0}); math.IsInf(z[0], 0) || math.IsNaN(z[0]) {
		t.Errorf("logits %v of a feature that was never seen", z)
	}
}

// TestOnlineRegret: on rows that a fixed map calibrates, online Platt scaling comes near to it; on a stream that turns
// round it is better than any map that stands still.
func TestOnlineRegret(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	still, turning := &stream{k: 2}, &stream{k: 2}
	const n = 20_000
	for i := range n {
		l := 4 * r.Float64()
		p := 1 / (1 + math.Exp(-l/2))
		still.z = append(still.z, 0, float32(l))
		still.labels = append(still.labels, int32(step(r.Float64() < p)))
		turning.z = append(turning.z, 0, float32(l))
		turning.labels = append(turning.labels, int32(step(r.Float64() < .5+.45*float64(1-2*(2*i/n)))))
	}
	a, err := online(still, nil)
	if err != nil || a.Mean < 0 || a.Mean > .005 || a.Excess > .01 {
		t.Errorf("on calibratable rows %+v, %v; want a regret near 0 from above, and no excess", a, err)
	}
	b, err := online(turning, nil)
	if err != nil || b.Mean > -.1 {
		t.Errorf("on a stream that turns round %+v, %v; want a regret below -0.1", b, err)
	}
}

func TestCache(t *testing.T) {
	c := cache(filepath.Join(t.TempDir(), "deep"))
	s, other := &stream{k: 1, z: []float32{1}, labels: []int32{0}}, &stream{k: 1, z: []float32{2}, labels: []int32{0}}
	want := peers{[]policy{{"schedule", scored{.1, .2, .3}}}, regret{.4, .5}}
	if err := c.put(s, want); err != nil {
		t.Fatal(err)
	}
	got, ok, err := c.get(s)
	if err != nil || !ok || got.Online != want.Online || !slices.Equal(got.Policies, want.Policies) {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	if _, ok, err := c.get(other); ok || err != nil {
		t.Errorf("another stream: %v, %v; want nothing", ok, err)
	}
	if err := os.WriteFile(c.file(s), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.get(s); err == nil {
		t.Error("a broken file was read")
	}
}

// TestSets: both sets are there, 20 drifting and 20 stationary streams each, drawn twice where they are drawn, and a
// few that are cheap to make are what they say.
func TestSets(t *testing.T) {
	lib := &library{dir: filepath.Dir(realdata.File(t, "drift_elec2.npz"))}
	for name, list := range map[string]func(*library) ([]recipe, error){"tuned": tuned, "held out": heldOut} {
		recipes, err := list(lib)
		if err != nil {
			t.Fatal(err)
		}
		drifting := 0
		for _, r := range recipes {
			drifting += step(r.drifting)
		}
		once := 0 // what happened in real time is not drawn again
		if name == "held out" {
			once = 3
		}
		if drifting != 20*tunedRuns-once || len(recipes) != 40*tunedRuns-once {
			t.Errorf("%s: %d drifting streams of %d", name, drifting, len(recipes))
		}
		for _, r := range recipes {
			if !strings.HasSuffix(r.name, "in time") && r.name != "NFL" {
				continue
			}
			s, err := r.make()
			if err != nil {
				t.Fatal(err)
			}
			if s.rows() < weekRows+dayRows || s.drifting != r.drifting || len(s.z) != s.rows()*s.k ||
				slices.Max(s.labels) != int32(s.k)-1 {
				t.Errorf("%s: %d rows, %d scores of %d classes, drifting %v", s.name, s.rows(), len(s.z), s.k,
					s.drifting)
			}
		}
	}
	runs, err := inRuns(lib)
	if err != nil || len(runs) != 20 {
		t.Fatalf("%d streams in runs, %v; want 20", len(runs), err)
	}
	s, err := runs[0].make() // two classes in runs of 40 rows, of which 4 in 5 are of one
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, y := range s.labels[1:] {
		same += step(y == s.labels[i])
	}
	if s.rows() != tunedRows || s.k != 2 || len(s.z) != 2*s.rows() || same < s.rows()*60/100 || same > s.rows()*70/100 {
		t.Errorf("%s: %d rows of %d classes, %d with the label of the row before; want two thirds", s.name, s.rows(),
			s.k, same)
	}
}
