package join

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
)

// rowInMemory is what a prediction of three classes takes.
const rowInMemory = entryBytes + 4*3

// onDisk returns the configuration with room for so many rows in memory, and small segments.
func onDisk(t testing.TB, c Options, rows int) Options {
	c.Dir, c.Name, c.MemoryBytes, c.SegmentBytes = t.TempDir(), "shard", max(rows*rowInMemory, 1), 400
	return c
}

// randomScript mixes predictions of two versions, some with their label, labels that name a version, a model or
// nothing, and watermarks. Ids are few, so that every kind of meeting happens.
func randomScript(seed uint64, steps int) []string {
	r := rand.New(rand.NewPCG(seed, 17))
	var out []string
	for i := range steps {
		id, ts := fmt.Sprintf("id%d", i/40+r.IntN(60)), i/4+r.IntN(12)
		names := []string{"m/1", "m/2", "m/", ""}
		switch r.IntN(20) {
		case 0:
			out = append(out, fmt.Sprintf("w %d", i/4-10))
		case 1, 2, 3, 4, 5, 6, 7, 8:
			out = append(out, fmt.Sprintf("l %s %d %d %s", id, ts, r.IntN(4), names[r.IntN(4)]))
		case 9:
			out = append(out, fmt.Sprintf("i %s %d %d %s", id, ts, r.IntN(3), names[r.IntN(2)]))
		default:
			out = append(out, fmt.Sprintf("p %s %d %s k=%d", id, ts, names[r.IntN(2)], 3+r.IntN(2)))
		}
	}
	return out
}

// TestTierLeavesNoTrace runs random scripts with everything in memory, and with room for 0, 1, 10 and 1,000 rows: what
// is joined, in which order, and every count must be the same at each step.
func TestTierLeavesNoTrace(t *testing.T) {
	for seed := range uint64(6) {
		c := Options{Config: Config{Wait: 25, MaxRows: []int{100000, 40}[seed%2], Remember: []int{0, 5, 1000}[seed%3]}}
		script := randomScript(seed, 800)
		whole := newJoinRun(t, c)
		var runs []*joinRun
		for _, rows := range []int{0, 1, 10, 1000} {
			r := newJoinRun(t, onDisk(t, c, rows))
			defer func() {
				if err := r.j.Close(); err != nil {
					t.Error(err)
				}
			}()
			runs = append(runs, r)
		}
		spilled := 0
		for i, step := range script {
			whole.do(step)
			want := countText(whole.counts.All())
			for _, r := range runs {
				r.do(step)
				if i%97 == 0 {
					r.reopen()
				}
				if got := countText(r.counts.All()); got != want || !slices.Equal(r.joined, whole.joined) {
					t.Fatalf("seed %d, step %d, %s, %d bytes in memory: counts %s, want %s; joined %d rows, want %d",
						seed, i, step, r.j.cfg.MemoryBytes, got, want, len(r.joined), len(whole.joined))
				}
				spilled = max(spilled, r.j.w.onDisk())
			}
		}
		if ok, detail := whole.conserves(); !ok {
			t.Errorf("seed %d: %s", seed, detail)
		}
		n := whole.counts.All()
		if spilled < 20 || n["joined"] < 50 || c.MaxRows > 40 && n["expired"] == 0 || c.Remember > 0 &&
			n[pipeline.CountCorrections] == 0 || c.MaxRows == 40 && n["evicted"] == 0 {
			t.Errorf("seed %d: at most %d rows on disk, %s: too little happens", seed, spilled, countText(n))
		}
	}
}

// TestTierLeavesNoTraceInOutputs does the same for whole shards, with crashes: state hash, outputs and counts.
func TestTierLeavesNoTraceInOutputs(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(31, batchtest.Options{N: 300, MaxLag: 60 * second, Unlabelled: .1, Sharpness: 2,
		Regions: 3, Weights: true, Served: true, Versions: []string{"a", "b"}})
	s := defaultSetup()
	s.slices = []string{"region"}
	s.join.Remember = 100
	in := worldtest.Stream(t, rows, 2, 16)
	want := newWorld(t, s, in, 1).run(worldtest.AnyOrder)
	for _, inMemory := range testsize.Short([]int{10}, []int{0, 1, 10, 1000}) {
		t.Run(fmt.Sprint(inMemory), func(t *testing.T) {
			c := s
			c.join = onDisk(t, s.join, inMemory)
			newWorld(t, c, in, 1).run(worldtest.AnyOrder).compare(want)
			w := newWorld(t, c, in, uint64(inMemory+2))
			w.Save, w.Crash = .1, .02
			w.run(worldtest.AnyOrder).compare(want)
			if inMemory < 100 && len(w.Files) < 5 {
				t.Errorf("%d files in checkpoints: nothing was on disk", len(w.Files))
			}
		})
	}
}

// TestRepeatsAreKnown sends every message of both topics twice, the second time at any later moment within the wait:
// no statistic changes.
func TestRepeatsAreKnown(t *testing.T) {
	t.Parallel()
	rows := batchtest.Rows(32, batchtest.Options{N: 300, MaxLag: 20 * second, Sharpness: 2})
	for i := range rows { // each row has a label pane and a prediction pane of its own run: nothing is late
		rows[i].LabelTS = rows[i].TS
	}
	s := defaultSetup()
	s.join.Remember = 1000
	once := worldtest.Stream(t, rows, 1, 10)
	want := newWorld(t, s, once, 1).run(worldtest.LogitsFirst)
	twice := make([]worldtest.Lanes, 1)
	for l := range once[0] {
		for i, r := range once[0][l] {
			if i >= 3 {
				again := once[0][l][i-3]
				twice[0][l] = append(twice[0][l], again)
			}
			twice[0][l] = append(twice[0][l], r)
		}
		for i := range twice[0][l] {
			twice[0][l][i].Offset = int64(i)
		}
	}
	got := newWorld(t, s, twice, 1)
	for got.Step(worldtest.InTurn) {
	}
	n := got.Counts()
	if n["duplicates"] != int64(300-30) || n[pipeline.CountCorrections] != 300-30 || n["joined"] != 300 ||
		n["labelled"] != 300 {
		t.Errorf("counts %v, want 300 joined, and 270 duplicates and corrections", n)
	}
	if w := want.Counts(); w["joined"] != 300 || w["duplicates"] != 0 {
		t.Errorf("counts without repeats: %v", w)
	}
}

func TestRemembered(t *testing.T) {
	for _, c := range []struct {
		name, script   string
		joined, counts string
	}{
		{"a second label", "p a 1; l a 5 2; l a 6 0", "a 2@5-1 m/1", "corrections=1 joined=1 labels=2 predictions=1"},
		{"a second label, labels first", "l a 5 2; l a 6 0; p a 1", "a 2@5-1 m/1",
			"corrections=1 joined=1 labels=2 predictions=1"},
		{"a second label that names the version", "p a 1; l a 5 2 m/1; l a 6 0 m/1", "a 2@5-1 m/1",
			"corrections=1 joined=1 labels=2 predictions=1"},
		{"the same, labels first", "l a 5 2 m/1; l a 6 0 m/1; p a 1", "a 2@5-1 m/1",
			"corrections=1 joined=1 labels=2 predictions=1"},
		{"a third", "p a 1; l a 5 2; l a 6 0; l a 7 0", "a 2@5-1 m/1", "corrections=2 joined=1 labels=3 predictions=1"},
		{"it still serves another version", "p a 1 m/1; l a 5 2; l a 6 0; p a 2 m/2", "a 0@6-2 m/2,a 2@5-1 m/1",
			"corrections=1 joined=2 labels=2 predictions=2"},
		{"of another model", "p a 1 m/1; l a 5 2; l a 6 0 n/1", "a 2@5-1 m/1", "joined=1 labels=2 predictions=1"},
		{"past the wait", "p a 1; l a 5 2; l a 12 0", "a 2@5-1 m/1", "joined=1 labels=2 predictions=1"},
		{"a repeated prediction", "p a 1; l a 5 2; p a 1; l a 6 1", "a 2@5-1 m/1",
			"corrections=1 duplicates=1 joined=1 labels=2 predictions=1"},
		{"of another version", "p a 1 m/1; l a 5 2 m/1; p a 1 m/2", "a 2@5-1 m/1", "joined=1 labels=1 predictions=2"},
		{"forgotten after the wait", "p a 1; l a 5 2; w 12; p a 11", "a 2@5-1 m/1", "joined=1 labels=1 predictions=2"},
		{"only the latest are remembered", "p a 1; p b 1; p c 1; l a 5 2; l b 5 2; l c 5 2; p a 1; p b 1; p c 1",
			"a 2@5-1 m/1,b 2@5-1 m/1,c 2@5-1 m/1", "duplicates=2 joined=3 labels=3 predictions=4"},
		{"the latest to have joined",
			"p a 1; p b 1; p c 1; p d 1; l b 5 2; l c 5 2; l d 5 2; l a 5 2; p a 1; p d 1; p c 1",
			"a 2@5-1 m/1,b 2@5-1 m/1,c 2@5-1 m/1,d 2@5-1 m/1", "duplicates=2 joined=4 labels=4 predictions=5"},
		{"with its label", "i a 1 2; i a 1 2; p a 1", "", "duplicates=2 inline=1 predictions=1"},
		{"with its label, of two versions", "i a 1 2 m/1; i a 1 2 m/2; i a 1 2 m/2", "",
			"duplicates=1 inline=2 predictions=2"},
		{"with its label, while it waits", "p a 1; i a 1 2; l a 5 1", "a 1@5-1 m/1",
			"duplicates=1 joined=1 labels=1 predictions=1"},
		{"with its label, and another label", "i a 1 2; l a 5 1; l a 6 1", "",
			"corrections=2 inline=1 labels=2 predictions=1"},
		{"with its label, and one before", "l a 5 1 m/1; l a 6 1; l b 5 1; i a 1 2", "",
			"corrections=2 inline=1 labels=3 predictions=1"},
		{"with its label, forgotten after the wait", "i a 1 2; w 12; i a 11 2", "", "inline=2 predictions=2"},
	} {
		for _, rows := range []int{-1, 0, 1, 2} {
			t.Run(fmt.Sprintf("%s/%d", c.name, rows), func(t *testing.T) {
				cfg := Options{Config: Config{Wait: 10, MaxRows: 4, Remember: 2}}
				if rows >= 0 {
					cfg = onDisk(t, cfg, rows)
				}
				r := newJoinRun(t, cfg)
				for step := range strings.SplitSeq(c.script, ";") {
					r.do(step)
					r.reopen()
				}
				if slices.Sort(r.joined); strings.Join(r.joined, ",") != c.joined {
					t.Errorf("joined %q, want %q", r.joined, c.joined)
				}
				if got := countText(r.counts.All()); got != c.counts {
					t.Errorf("counts %q, want %q", got, c.counts)
				}
				if ok, detail := r.conserves(); !ok {
					t.Error(detail)
				}
				if err := r.j.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestOneIDIsBounded sends labels and versions of one id without end: what each row looks at is bounded, and every one
// is counted.
func TestOneIDIsBounded(t *testing.T) {
	for _, rows := range []int{-1, 3} {
		c := Options{Config: Config{Wait: 1000, MaxRows: 100000, Remember: 1000}}
		if rows >= 0 {
			c = onDisk(t, c, rows)
		}
		r := newJoinRun(t, c)
		for i := range 100 {
			r.do(fmt.Sprintf("l a %d 1 n/%d", i, i))
			r.do(fmt.Sprintf("p a %d m/%d", i, i))
		}
		r.do("l a 5 1 m/3")
		if got, want := countText(r.counts.All()), "evicted=136 joined=1 labels=101 predictions=100"; got != want ||
			r.j.w.n.bounded() != 63 {
			t.Errorf("counts %s, %d kept, want %s, 63", got, r.j.w.n.bounded(), want)
		}
		if ok, detail := r.conserves(); !ok {
			t.Error(detail)
		}
		if err := r.j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedFileIsRefused changes, cuts and removes a file that the state refers to.
func TestDamagedFileIsRefused(t *testing.T) {
	r := newJoinRun(t, onDisk(t, Options{Config: Config{Wait: 10, MaxRows: 1000}}, 0))
	for i := range 100 {
		r.do(fmt.Sprintf("p id%d 1", i))
	}
	state, err := r.j.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range r.j.Files() {
		if files[f.Name], err = os.ReadFile(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 5 {
		t.Fatalf("%d files", len(files))
	}
	restore := func(change func(b []byte) []byte) error {
		j := New(onDisk(t, r.j.cfg, 0), host(pipeline.NewCounts()))
		first := true
		err := j.RestoreFiles(state, func(name, path string) error {
			b := slices.Clone(files[name])
			if first {
				b, first = change(b), false
			}
			if b == nil {
				return os.ErrNotExist
			}
			return os.WriteFile(path, b, 0o644)
		})
		if cerr := j.Close(); cerr != nil {
			t.Error(cerr)
		}
		return err
	}
	if err := restore(func(b []byte) []byte { return b }); err != nil {
		t.Errorf("whole: %v", err)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"flipped": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut":     func(b []byte) []byte { return b[:len(b)-1] },
		"empty":   func([]byte) []byte { return []byte{} },
		"gone":    func([]byte) []byte { return nil },
	} {
		if err := restore(change); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	if err := r.j.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(r.j.cfg.Dir); len(left) > 0 {
		t.Errorf("%d entries left in the directory", len(left))
	}
}

// FuzzJoinState restores changed states: an error or a state that can be saved again, no panic.
func FuzzJoinState(f *testing.F) {
	for _, rows := range []int{-1, 2} {
		c := Options{Config: Config{Wait: 10, MaxRows: 1000, Remember: 10}}
		if rows >= 0 {
			c = onDisk(f, c, rows)
			c.SegmentBytes = 1 << 20
		}
		counts := pipeline.NewCounts()
		j := New(c, host(counts))
		for _, step := range []string{"p a 1", "p b 1", "l c 2 1", "l a 3 1", "p d 4"} {
			if _, err := j.Process(f.Context(), scriptBatch(strings.Fields(step)),
				func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }); err != nil {
				f.Fatal(err)
			}
		}
		state, err := j.AppendState(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(state)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		counts := pipeline.NewCounts()
		j := New(Options{Config: Config{Wait: 10, MaxRows: 1000, Remember: 10, MemoryBytes: 1, Dir: dir},
			Name: "s"}, host(counts))
		defer j.Close()
		if j.RestoreState(data) != nil {
			return
		}
		emit := func(*arrowio.Batch) (pipeline.Rejects, error) { return nil, nil }
		for _, step := range []string{"l a 3 1", "p a 1", "l d 5 2", "w 100"} {
			f := strings.Fields(step)
			if f[0] == "w" {
				_ = j.Advance(t.Context(), 100, emit)
			} else {
				_, _ = j.Process(t.Context(), scriptBatch(f), emit)
			}
		}
		if _, err := j.AppendState(nil); err != nil {
			t.Fatalf("taken and not writable: %v", err)
		}
	})
}

// TestFeaturesCostNothingWithoutAnArchive: a join that is not asked for features keeps none.
func TestFeaturesCostNothingWithoutAnArchive(t *testing.T) {
	const rows, d = 50, 5
	b := predictionBatch(rows, 4)
	b.D, b.Features = d, make([]float32, rows*d)
	fillBatch(b, 0)
	kept := map[int]int{}
	for _, width := range []int{0, 2, 4} {
		j := New(Options{Config: Config{Wait: 1 << 60, MaxRows: 1 << 20}, Slices: []string{"region"},
			FeatureBytes: width},
			host(pipeline.NewCounts()))
		if _, err := j.Process(t.Context(), b, func(*arrowio.Batch) (pipeline.Rejects, error) {
			return nil,
				nil
		}); err != nil {
			t.Fatal(err)
		}
		for e := range j.w.inOrder {
			kept[width] += len(j.w.kept(&j.w.entries[e])) * 4
		}
	}
	if kept[0] != rows*4*4 || kept[0] >= kept[2] || kept[2] >= kept[4] {
		t.Errorf("bytes by width %v, want %d without features: four scores a row", kept, rows*4*4)
	}
}
