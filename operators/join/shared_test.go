package join

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline"
)

// TestModelsThatShareIDs: while models share ids, a label that may be for both joins both, whichever of the
// three is read last, after a restart, and where rows wait on disk.
func TestModelsThatShareIDs(t *testing.T) {
	first := "p z 1 m/1; p z 1 n/2; l z 2 1;"
	for _, c := range []struct {
		name, label string
		orders      []string
		joined      []string
	}{
		{"no model", "l a 5 2", []string{"p a 1 m/1; LABEL; p a 3 n/2", "p a 3 n/2; LABEL; p a 1 m/1",
			"LABEL; p a 1 m/1; p a 3 n/2", "p a 1 m/1; p a 3 n/2; LABEL"}, []string{"a 2@5-1 m/1", "a 2@5-3 n/2"}},
		{"no version", "l a 5 2 m/", []string{"p a 1 m/1; LABEL; p a 3 m/2; p a 3 n/2", "LABEL; p a 3 m/2; p a 1 m/1",
			"p a 3 m/2; LABEL; p a 3 n/2; p a 1 m/1"}, []string{"a 2@5-1 m/1", "a 2@5-3 m/2"}},
		{"one version", "l a 5 2 n/2", []string{"p a 1 m/1; LABEL; p a 3 n/2", "p a 3 n/2; LABEL; p a 1 m/1"},
			[]string{"a 2@5-3 n/2"}},
		{"the first of two labels", "l a 5 2; l a 6 0", []string{"p a 1 m/1; LABEL; p a 3 n/2",
			"LABEL; p a 3 n/2; p a 1 m/1"}, []string{"a 2@5-1 m/1", "a 2@5-3 n/2"}},
		{"after the wait", "l a 5 2", []string{"p a 1 m/1; LABEL; w 16; p a 3 n/2"}, []string{"a 2@5-1 m/1"}},
	} {
		for _, order := range c.orders {
			for _, memory := range []int{0, 1} {
				t.Run(fmt.Sprint(c.name, ": ", order, " ", memory), func(t *testing.T) {
					config := Config{Wait: 10, MaxRows: 100, Remember: 100, MemoryBytes: memory, Dir: t.TempDir()}
					r := newJoinRun(t, Options{Config: config, Name: "s"}).do(first)
					r.joined = nil
					for step := range strings.SplitSeq(strings.ReplaceAll(order, "LABEL", c.label), ";") {
						r.reopen()
						r.do(step)
					}
					if slices.Sort(r.joined); !slices.Equal(r.joined, c.joined) {
						t.Errorf("joined %q, want %q", r.joined, c.joined)
					}
					if ok, detail := r.conserves(); !ok {
						t.Error(detail)
					}
				})
			}
		}
	}
}

// TestOneSharedIDIsForgotten: a request that was scored twice, as while versions change, does not keep labels for ever.
func TestOneSharedIDIsForgotten(t *testing.T) {
	r := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 100, Remember: 100}})
	r.do("p z 1 m/1; p z 1 m/2; l z 2 1; p a 5 m/2; l a 6 1; p b 12 m/2; l b 12 1")
	if n := r.j.w.n.served; n != 2 {
		t.Errorf("%d labels stay after they have joined, want those of z and a", n)
	}
	if r.do("w 30"); r.j.w.n.bounded() != 0 {
		t.Errorf("%d rows stay for ever", r.j.w.n.bounded())
	}
}

// TestSharedIDsInAnyOrder: what joins does not depend on the order in which predictions and labels are read.
func TestSharedIDsInAnyOrder(t *testing.T) {
	var steps []string
	for i := range 40 {
		steps = append(steps, fmt.Sprintf("p r%d %d m/1", i, i), fmt.Sprintf("p r%d %d n/1", i, i),
			fmt.Sprintf("l r%d %d %d", i, i+2, i%3))
	}
	var want []string
	for seed := range uint64(20) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		r := newJoinRun(t, Options{Config: Config{Wait: 100, MaxRows: 1000, Remember: 1000}})
		r.do("p z 1 m/1; p z 1 n/1").do(strings.Join(steps, ";"))
		if slices.Sort(r.joined); seed == 0 {
			want = r.joined
		}
		if len(want) != 80 || !slices.Equal(r.joined, want) {
			t.Fatalf("seed %d: %d rows have joined, %d of seed 0; want 80, the same", seed, len(r.joined), len(want))
		}
		if n := r.counts.All(); n[pipeline.CountMet] != 40 || n[pipeline.CountCorrections] != 0 {
			t.Errorf("seed %d: %v, want 40 labels that met a prediction", seed, n)
		}
	}
}

// TestLabelsOfOneMessageThatStay: those within the wait of a shared id stay, whatever the row before them does.
func TestLabelsOfOneMessageThatStay(t *testing.T) {
	r := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 100, Remember: 100}})
	r.do("p z 1 m/1; p z 1 n/1; p a 5 m/1; p b 5 m/1")
	both, b := scriptBatch([]string{"l", "a", "12", "1"}), scriptBatch([]string{"l", "b", "8", "1"})
	both.N, both.IDs, both.TS, both.Label = 2, append(both.IDs, b.IDs...), append(both.TS, b.TS...),
		append(both.Label, b.Label...)
	if _, err := r.j.Process(context.Background(), both, r.emit); err != nil {
		t.Fatal(err)
	}
	if r.do("p a 5 n/1; p b 5 n/1"); !slices.Equal(r.joined, []string{"a 1@12-5 m/1", "b 1@8-5 m/1", "b 1@8-5 n/1"}) {
		t.Errorf("joined %q, want b of both models", r.joined)
	}
}

// TestRepeatsShareNoID: a prediction that is read twice says nothing new about its id.
func TestRepeatsShareNoID(t *testing.T) {
	for range 20 { // the order in which rows of an id are found is random
		r := newJoinRun(t, Options{Config: Config{Wait: 10, MaxRows: 100, Remember: 100}})
		if r.do("p a 1 m/1; l a 1 1; p a 2 n/1; p a 9 n/1"); r.j.w.sharedAt != 2 {
			t.Fatalf("the latest shared id is of %d, want 2, its second model's prediction", r.j.w.sharedAt)
		}
	}
}
