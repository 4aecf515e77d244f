package join

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// slicedRun is a join whose predictions have values of the columns a, b and c, some of them null, and what comes out of
// it.
type slicedRun struct {
	*joinRun
	sent map[string]map[string]string // id → column → value
	came map[string]map[string]string
}

func (r *slicedRun) predict(t *testing.T, g *rand.Rand, i int) {
	t.Helper()
	id := fmt.Sprint("id", i)
	b := scriptBatch([]string{"p", id, fmt.Sprint(i), "m/1"})
	of := map[string]string{}
	for _, column := range []string{"a", "b", "c"} {
		if g.IntN(4) == 0 {
			continue
		}
		of[column] = fmt.Sprint(column, "=", g.IntN(5)) // a separator that a reader might trip over
		b.Slices = append(b.Slices, arrowio.SliceColumn{Name: column, Values: []string{of[column]}, Index: []int32{0}})
	}
	r.sent[id] = of
	if _, err := r.j.Process(t.Context(), b, r.take); err != nil {
		t.Fatal(err)
	}
}

func (r *slicedRun) label(t *testing.T, i int) {
	t.Helper()
	if _, err := r.j.Process(t.Context(), scriptBatch([]string{"l", fmt.Sprint("id", i), fmt.Sprint(i), "1"}),
		r.take); err != nil {
		t.Fatal(err)
	}
}

func (r *slicedRun) take(b *arrowio.Batch) (pipeline.Rejects, error) {
	for i := 0; b.Kind == arrowio.Labelled && i < b.N; i++ {
		of := map[string]string{}
		for _, s := range b.Slices {
			if s.Index[i] >= 0 {
				of[s.Name] = s.Values[s.Index[i]]
			}
		}
		r.came[strings.TrimRight(string(b.IDs[i][:]), "\x00")] = of
	}
	return b.Reject, nil
}

// restart goes on from a checkpoint with other columns.
func (r *slicedRun) restart(t *testing.T, c Options) (log string) {
	t.Helper()
	state, err := r.j.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.j.Files() {
		files[f.Name] = filepath.Join(t.TempDir(), f.Name)
		if err := os.Link(f.Path, files[f.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.j.Close(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	r.joinRun = newLoggedRun(t, c, slog.New(slog.NewTextHandler(&text, nil)))
	if err := r.j.RestoreFiles(state, func(name, path string) error { return os.Link(files[name], path) }); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestSliceColumnsOverRestarts: whatever becomes of slices.columns between restarts, and wherever a prediction waits,
// its values are those of their own columns, or none: never another's. Predictions of the latest configuration have all
// of theirs, and no prediction is lost.
func TestSliceColumnsOverRestarts(t *testing.T) {
	configs := [][]string{{"a", "b"}, {"a", "c"}, {"b", "a"}, {"b"}, {}, {"c", "a", "b"}, {"x", "y"}, {"a", "b"}}
	for _, inMemory := range []int{-1, 0, 7} {
		t.Run(fmt.Sprint(inMemory), func(t *testing.T) {
			kept := 0
			for seed := range uint64(10) {
				g := rand.New(rand.NewPCG(seed, 5))
				c := Options{Config: Config{Wait: 1 << 40, MaxRows: 1000}, Slices: configs[g.IntN(len(configs))]}
				if inMemory >= 0 {
					c = onDisk(t, c, inMemory)
				}
				r := &slicedRun{newJoinRun(t, c), map[string]map[string]string{}, map[string]map[string]string{}}
				var since [][]string // by prediction: the columns that were configured all along, while it waited
				for range 4 {
					for range 15 {
						r.predict(t, g, len(since))
						since = append(since, slices.Clone(c.Slices))
					}
					c.Slices = configs[g.IntN(len(configs))]
					for i := range since {
						since[i] = slices.DeleteFunc(since[i],
							func(s string) bool { return !slices.Contains(c.Slices, s) })
					}
					r.restart(t, c)
				}
				for i := range since {
					r.label(t, i)
				}
				if err := r.j.Close(); err != nil {
					t.Fatal(err)
				}
				for i, columns := range since {
					id := fmt.Sprint("id", i)
					came, ok := r.came[id]
					if !ok {
						t.Errorf("%s did not join", id)
					}
					for column, v := range came {
						if r.sent[id][column] != v || !slices.Contains(c.Slices, column) {
							t.Errorf("%s has %s of column %s, sent was %v", id, v, column, r.sent[id])
						}
					}
					for _, column := range columns {
						if v := r.sent[id][column]; v != "" {
							if kept++; came[column] != v {
								t.Errorf("%s has lost %s of column %s, which was there all along: %v", id, v, column,
									came)
							}
						}
					}
				}
			}
			if kept < 50 {
				t.Errorf("%d values were there all along: the test tests little", kept)
			}
		})
	}
}

// TestDroppedSlicesAreCounted says how many values of waiting predictions went with their columns, and tells which.
func TestDroppedSlicesAreCounted(t *testing.T) {
	for _, inMemory := range []int{-1, 0, 7} {
		c := Options{Config: Config{Wait: 1 << 40, MaxRows: 1000}, Slices: []string{"a", "b"}}
		if inMemory >= 0 {
			c = onDisk(t, c, inMemory)
		}
		r := &slicedRun{newJoinRun(t, c), map[string]map[string]string{}, map[string]map[string]string{}}
		g, want := rand.New(rand.NewPCG(3, 5)), int64(0)
		for i := range 40 {
			r.predict(t, g, i)
			if r.sent[fmt.Sprint("id", i)]["b"] != "" {
				want++
			}
		}
		if log := r.restart(t, c); log != "" {
			t.Errorf("the same columns are told of: %s", log)
		}
		c.Slices = []string{"a", "renamed"}
		log := r.restart(t, c)
		if got := r.counts.All()[CountDroppedSlices]; got != want || want == 0 {
			t.Errorf("%d in memory: %d values dropped, want %d", inMemory, got, want)
		}
		for _, part := range []string{"slices.columns has changed since the checkpoint", `checkpoint="[a b]"`,
			`slices.columns="[a renamed]"`, fmt.Sprint("values=", want)} {
			if !strings.Contains(log, part) {
				t.Errorf("the log does not say %q: %s", part, log)
			}
		}
		if err := r.j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
