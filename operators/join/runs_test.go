package join

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
)

// TestRunsAreAsSingleRows feeds messages whole and row by row: what joins, what is counted and the state must be the
// same, for ids that are alone and ids that are not, corrections, labels out of range and ones that come first.
func TestRunsAreAsSingleRows(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		o := Options{Config: Config{Wait: 10 * time.Minute, MaxRows: []int{100_000, 300}[seed%2],
			Remember: []int{100_000, 0, 150}[seed%3]}, Slices: []string{"region", "tier"}, SegmentBytes: 4000}
		whole, single := newFed(o), newFed(o)
		ids := []int{40, 3000, 1 << 30}[random.IntN(3)]
		for message := range 60 {
			b := randomMessage(random, message, ids)
			whole.feed(t, b)
			for i := range b.N {
				single.feed(t, rowOf(b, i))
			}
			for _, f := range []*fed{whole, single} {
				if err := f.Advance(context.Background(), int64(message-3)*100*second, nil); err != nil {
					t.Fatal(err)
				}
			}
			if !maps.EqualFunc(whole.rows, single.rows, slices.Equal[[]string]) {
				t.Fatalf("seed %d: message %d: other rows have joined", seed, message)
			}
			if a, b := whole.counts.All(), single.counts.All(); !maps.Equal(a, b) {
				t.Fatalf("seed %d: message %d: counts %v, row by row %v", seed, message, a, b)
			}
			if !bytes.Equal(whole.state(t), single.state(t)) {
				t.Fatalf("seed %d: message %d: the states differ", seed, message)
			}
		}
		if n := whole.counts.All(); n[pipeline.CountJoined] == 0 && ids < 1<<30 {
			t.Errorf("seed %d: nothing has joined", seed)
		}
	}
}

// fed is an operator with the rows that have joined, by model version and number of classes.
type fed struct {
	*Operator
	rows map[string][]string
}

func newFed(o Options) *fed {
	return &fed{New(o, host(pipeline.NewCounts())), map[string][]string{}}
}

func (f *fed) feed(t *testing.T, b *arrowio.Batch) {
	t.Helper()
	take := func(b *arrowio.Batch) (pipeline.Rejects, error) {
		for i := range b.N {
			if b.Kind == arrowio.Labelled {
				row := fmt.Sprint(b.IDs[i], b.TS[i], b.LabelTS[i], b.Label[i], b.Scores[i*b.K:(i+1)*b.K],
					b.Served[i], b.Weight[i])
				for _, s := range b.Slices {
					if row += " null"; s.Index[i] >= 0 {
						row += s.Name + s.Values[s.Index[i]]
					}
				}
				group := fmt.Sprint(b.Models[0], b.K)
				f.rows[group] = append(f.rows[group], row)
			}
		}
		return b.Reject, nil
	}
	if _, err := f.Process(context.Background(), b, take); err != nil {
		t.Fatal(err)
	}
}

func (f *fed) state(t *testing.T) []byte {
	t.Helper()
	out, err := f.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// randomMessage has predictions of two numbers of classes, some with labels, or labels; of ids of so many, the latest
// come more often.
func randomMessage(random *rand.Rand, message, ids int) *arrowio.Batch {
	n := 1 + random.IntN(700)
	b := predictionBatch(n, 2+message%5/4)
	b.Models = []arrowio.ModelKey{{Model: "m", Version: "1"}, {Model: "m", Version: "2"}, {Model: "other"}}
	b.Model, b.Label = make([]int32, n), make([]int32, n)
	b.Served, b.Weight = make([]float32, n), make([]float32, n)
	mixed, inline := random.IntN(3) == 0, random.IntN(4) == 0
	if b.Kind = arrowio.Labels; random.IntN(2) == 0 {
		b.Kind = arrowio.Predictions
	}
	for i := range n {
		id := i + message/2*400
		if random.IntN(20) == 0 || ids == 40 {
			id = random.IntN(ids)
		}
		b.IDs[i] = arrowio.ID{byte(id), byte(id >> 8), byte(id >> 16), 15: 1}
		b.TS[i] = int64(message)*100*second + int64(random.IntN(100))*second
		if mixed {
			b.Model[i] = int32(random.IntN(3))
		}
		if b.Label[i] = int32(random.IntN(40) % 3); b.Kind == arrowio.Predictions && (!inline || random.IntN(4) > 0) {
			b.Label[i] = -1
		}
		b.Served[i], b.Weight[i] = random.Float32(), random.Float32()
		b.Slices[0].Index[i] = int32(random.IntN(4) - 1)
	}
	for i := range b.Scores {
		b.Scores[i] = random.Float32()
	}
	if random.IntN(3) == 0 {
		b.Reject = make([]string, n)
		b.Reject[random.IntN(n)] = "a reason"
	}
	if b.Kind == arrowio.Labels {
		b.K, b.Scores, b.Slices, b.Served, b.Weight = 0, nil, nil, nil, nil
		if random.IntN(4) == 0 {
			b.Models, b.Model = nil, nil // they name no model
		}
	}
	return b
}

// rowOf is a message of row i alone.
func rowOf(b *arrowio.Batch, i int) *arrowio.Batch {
	c := *b
	c.N, c.IDs, c.TS, c.Label = 1, b.IDs[i:i+1], b.TS[i:i+1], b.Label[i:i+1]
	if b.Model != nil {
		c.Model = b.Model[i : i+1]
	}
	if b.Reject != nil {
		c.Reject = b.Reject[i : i+1]
	}
	if b.Kind == arrowio.Predictions {
		c.Scores, c.Served, c.Weight = b.Scores[i*b.K:(i+1)*b.K], b.Served[i:i+1], b.Weight[i:i+1]
		c.Slices = slices.Clone(b.Slices)
		for s := range c.Slices {
			c.Slices[s].Index = c.Slices[s].Index[i : i+1]
		}
	}
	return &c
}
