package apply

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
)

const second = int64(1e9)

// TestPublishedIsBounded: however many calibrators are published, and in whatever order they come, the newest are kept,
// and each row has the newest of those that were in force at its event time.
func TestPublishedIsBounded(t *testing.T) {
	const n = 500
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	rng := rand.New(rand.NewPCG(1, 1))
	p := NewPublished()
	order := make([]int, n)
	for i := range order {
		order[i] = i + 1
	}
	for i := range order { // neighbours change places, and some come twice
		j := min(n-1, i+rng.IntN(4))
		order[i], order[j] = order[j], order[i]
	}
	order = append(order, n, n/2, n-3)
	for _, revision := range order {
		cal, err := json.Marshal(map[string]any{"version": 1, "method": "temperature",
			"temperature": 1 + float64(revision)/n})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Put(m, Publication{Revision: revision, From: int64(revision) * second, Encoded: cal}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(p.by[m]); got != keptRevisions {
		t.Errorf("%d calibrators are kept, want %d", got, keptRevisions)
	}
	if l, _, ok := p.Newest(m); !ok || l.Revision != n || l.From != n*second {
		t.Errorf("the latest is %+v", l)
	}
	for at := int64(1); at <= n+5; at++ {
		want := min(at, n) // the plain reference: all of them
		got := p.At(m, at*second, 3, arrowio.ID{})
		if old := want <= n-keptRevisions; old != (got == nil) || got != nil && int64(got.Revision) != want {
			t.Errorf("a row of %d s has %s, want %d", at, fmt.Sprintf("%+v", got), want)
		}
	}
}

func TestPublishedByEventTime(t *testing.T) {
	p := NewPublished()
	m := arrowio.ModelKey{Model: "m", Version: "v"}
	put := func(revision int, from int64, temperature float64) {
		t.Helper()
		encoded := batchtest.Temperature(t, temperature)
		if err := p.Put(m, Publication{Revision: revision, From: from, Encoded: encoded}); err != nil {
			t.Fatal(err)
		}
	}
	var id arrowio.ID
	put(1, 100, 2)
	put(2, 200, 3)
	put(2, 200, 3) // the topic is read again after a restart
	if p.At(m, 99, 2, id) != nil || p.At(m, 100, 2, id).Revision != 1 || p.At(m, 200, 2, id).Revision != 2 ||
		len(p.by[m]) != 2 || p.At(arrowio.ModelKey{Model: "m", Version: "w"}, 500, 2, id) != nil {
		t.Errorf("table %+v", p.by)
	}
	if err := p.Put(m, Publication{Revision: 3, From: 300, Encoded: []byte("{}")}); err == nil {
		t.Error("a calibrator that is none was taken")
	}
}
