package stats_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/operators/stats"
	"github.com/plumbline/plumbline/operators/sumconfig"
	"github.com/plumbline/plumbline/pipeline"
)

// pane is the length of a pane; times in these tests count in the same unit.
const pane = 10

// rig is an operator with the messages that it has put out.
type rig struct {
	t      *testing.T
	op     *stats.Operator
	outbox *pipeline.Outbox
	counts *pipeline.Counts
}

func newRig(t *testing.T) *rig { return rigOf(t, sums) }

// sums is the configuration of sums.
var sums = acc.Config{Bins: 15, SoftBins: 15, SoftTemperature: .01, SampleRows: 8, SampleBytes: 1 << 16}

func rigOf(t *testing.T, sums acc.Config) *rig {
	r := &rig{t: t, outbox: pipeline.NewOutbox(0, 1, pane, 1), counts: pipeline.NewCounts()}
	r.op = stats.New(stats.Options{Pane: pane, MaxKeys: 10,
		Acc: sums}, pipeline.Host{Outbox: r.outbox, Counts: r.counts})
	return r
}

// predictions are rows of one version at the given times.
func predictions(version string, at ...int64) *arrowio.Batch {
	b := &arrowio.Batch{Kind: arrowio.Predictions, N: len(at), K: 2,
		Models: []arrowio.ModelKey{{Model: "m", Version: version}}}
	for _, ts := range at {
		b.TS, b.IDs = append(b.TS, ts), append(b.IDs, arrowio.ID{byte(ts), byte(len(b.IDs))})
		b.Scores = append(b.Scores, 1, 0)
	}
	return b
}

// labelled are joined rows: a prediction time and a label time each.
func labelled(version string, at ...[2]int64) *arrowio.Batch {
	var ts []int64
	for _, a := range at {
		ts = append(ts, a[0])
	}
	b := predictions(version, ts...)
	b.Kind = arrowio.Labelled
	for _, a := range at {
		b.Label, b.LabelTS = append(b.Label, 0), append(b.LabelTS, a[1])
	}
	return b
}

func (r *rig) take(batches ...*arrowio.Batch) {
	r.t.Helper()
	for _, b := range batches {
		next := 0
		if _, err := r.op.Process(context.Background(), b, func(got *arrowio.Batch) (pipeline.Rejects, error) {
			next++
			return nil, nil
		}); err != nil || next != 1 {
			r.t.Fatalf("%v; handed on %d times, want once", err, next)
		}
	}
}

// advance moves the watermark and returns the cells that came out, as text, in their order.
func (r *rig) advance(watermark int64) (out []string) {
	r.t.Helper()
	if err := r.op.Advance(context.Background(), watermark, nil); err != nil {
		r.t.Fatal(err)
	}
	for _, m := range r.outbox.Pending() {
		p, err := pipeline.DecodePane(m.Value)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, c := range p.Cells {
			set, err := new(acc.Decoder).DecodeSet(c.Set)
			if err != nil {
				r.t.Fatal(err)
			}
			seen, _ := set.SeenRows()
			text := fmt.Sprintf("%s%s pane %d of %d: %d seen, %d labelled", c.Version, c.Slice, p.LabelPane,
				c.PredictionPane, seen, set.LabelledRows())
			if p.Late {
				text += ", late"
			}
			out = append(out, text)
		}
	}
	r.outbox.Clear()
	return out
}

// TestCells: in which cell a row counts, and when its cell goes out.
func TestCells(t *testing.T) {
	rejected := predictions("v1", 1, 2)
	rejected.Reject = []string{"", arrowio.NonfiniteScores}
	for _, c := range []struct {
		name    string
		batches []*arrowio.Batch
		at      int64
		want    []string
	}{
		{"nothing", nil, 100, nil},
		{"predictions", []*arrowio.Batch{predictions("v1", 1, 9, 10)}, 20,
			[]string{"v1 pane 0 of 0: 2 seen, 0 labelled", "v1 pane 1 of 1: 1 seen, 0 labelled"}},
		{"a pane that is still open", []*arrowio.Batch{predictions("v1", 1, 9, 10)}, 19,
			[]string{"v1 pane 0 of 0: 2 seen, 0 labelled"}},
		{"labels count in the pane in which they come",
			[]*arrowio.Batch{labelled("v1", [2]int64{1, 2}, [2]int64{3, 25}, [2]int64{12, 25})}, 100,
			[]string{"v1 pane 0 of 0: 0 seen, 1 labelled", "v1 pane 2 of 0: 0 seen, 1 labelled",
				"v1 pane 2 of 1: 0 seen, 1 labelled"}},
		{"versions in the order of their names", []*arrowio.Batch{predictions("v2", 1), predictions("v1", 2)}, 10,
			[]string{"v1 pane 0 of 0: 1 seen, 0 labelled", "v2 pane 0 of 0: 1 seen, 0 labelled"}},
		{"before 1970", []*arrowio.Batch{predictions("v1", -1, -10, -11)}, 0,
			[]string{"v1 pane -2 of -2: 1 seen, 0 labelled", "v1 pane -1 of -1: 2 seen, 0 labelled"}},
		{"rejected rows", []*arrowio.Batch{rejected}, 10, []string{"v1 pane 0 of 0: 1 seen, 0 labelled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.take(c.batches...)
			if got := r.advance(c.at); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := r.advance(c.at); len(got) != 0 {
				t.Errorf("the same watermark again gives %q", got)
			}
		})
	}
}

// TestLateRows: rows of a pane that has gone out go out apart, as late, with the next watermark.
func TestLateRows(t *testing.T) {
	r := newRig(t)
	r.take(predictions("v1", 1))
	r.advance(10)
	r.take(predictions("v1", 2, 3, 11))
	want := []string{"v1 pane 0 of 0: 2 seen, 0 labelled, late", "v1 pane 1 of 1: 1 seen, 0 labelled"}
	if got := r.advance(20); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := r.counts.All()[pipeline.CountLate]; n != 2 {
		t.Errorf("%d late rows are counted, want 2", n)
	}
}

// TestStateGoesOn: an operator restored from a state has the same bytes and puts out the same.
func TestStateGoesOn(t *testing.T) {
	r, again := newRig(t), newRig(t)
	r.take(predictions("v1", 1, 5, 12), labelled("v2", [2]int64{1, 13}))
	r.advance(10)
	r.take(predictions("v1", 2))
	state, err := r.op.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.op.RestoreState(state); err != nil {
		t.Fatal(err)
	}
	if b, err := again.op.AppendState(nil); err != nil || !bytes.Equal(b, state) {
		t.Errorf("another state after a restore, %v", err)
	}
	// A frozen state is of its moment, whatever comes before it is encoded and meanwhile.
	for _, beside := range []bool{false, true} {
		again = newRig(t)
		if err := again.op.RestoreState(state); err != nil {
			t.Fatal(err)
		}
		frozen, encoded := again.op.Freeze(), make(chan []byte, 1)
		encode := func() {
			b, err := frozen(nil)
			if err != nil {
				t.Error(err)
			}
			encoded <- b
		}
		if beside {
			go encode()
		}
		again.take(predictions("v1", 1, 3, 12), labelled("v3", [2]int64{1, 13}))
		again.advance(30)
		again.take(predictions("v1", 31, 32))
		if !beside {
			encode()
		}
		if !bytes.Equal(<-encoded, state) {
			t.Error("another state of a frozen one")
		}
	}
	again = newRig(t)
	if err := again.op.RestoreState(state); err != nil {
		t.Fatal(err)
	}
	if got, want := again.advance(20), r.advance(20); len(want) != 3 || !slices.Equal(got, want) {
		t.Errorf("after a restore %q, want %q", got, want)
	}
	longer := stats.New(stats.Options{Pane: 2 * pane}, pipeline.Host{Outbox: r.outbox, Counts: r.counts})
	if err := longer.RestoreState(state); err == nil || !strings.Contains(err.Error(), "event_time.pane was 10ns "+
		"and is 20ns: set it back") {
		t.Errorf("with panes of another length: %v", err)
	}
	for n := range len(state) {
		if n == len(state)-len(sumconfig.Append(nil, sums)) {
			continue // a state of old
		}
		if err := newRig(t).op.RestoreState(state[:n]); err == nil {
			t.Fatalf("%d of %d bytes are a state", n, len(state))
		}
	}
}

// TestOtherSums: a state is refused where a key that decides the shape of sums was changed, with cells and without: the
// panes topic may still have panes of the shape before. A state of old, which does not say its shape, is read, and so
// is one of smaller samples.
func TestOtherSums(t *testing.T) {
	idle, busy := newRig(t), newRig(t)
	for _, r := range []*rig{idle, busy} {
		r.take(predictions("v1", 1, 5, 12))
	}
	if got := idle.advance(100); len(got) != 2 {
		t.Fatalf("%q came out, want two cells: the state has some", got)
	}
	for name, r := range map[string]*rig{"idle": idle, "busy": busy} {
		state, err := r.op.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		old := state[:len(state)-len(sumconfig.Append(nil, sums))]
		if err := newRig(t).op.RestoreState(old); err != nil {
			t.Errorf("%s: a state of old: %v", name, err)
		}
		larger := sums
		larger.SampleRows, larger.SampleBytes = 20, 1<<20
		if err := rigOf(t, larger).op.RestoreState(state); err != nil {
			t.Errorf("%s: with other samples: %v", name, err)
		}
		for want, change := range map[string]func(*acc.Config){
			"stats.bins was 15 and is 20":                 func(c *acc.Config) { c.Bins = 20 },
			"stats.soft_bins was 15 and is 10":            func(c *acc.Config) { c.SoftBins = 10 },
			"stats.soft_temperature was 0.01 and is 0.02": func(c *acc.Config) { c.SoftTemperature = .02 },
		} {
			is := sums
			change(&is)
			err := rigOf(t, is).op.RestoreState(state)
			if err == nil || !strings.Contains(err.Error(), want+": set back") {
				t.Errorf("%s: error %v, want %q in it", name, err, want)
			}
		}
	}
}
