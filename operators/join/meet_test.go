package join_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/pipeline"
)

const second = int64(time.Second)

// joined runs the operator over records of one row, as text: p for a prediction, l for a label, the id, @ and the time
// in seconds; w moves the watermark. It returns the joined rows, with the label's lag, and the counts that are not 0.
func joined(t *testing.T, o join.Options, records string) (rows []string, counts map[string]int64) {
	t.Helper()
	c := pipeline.NewCounts()
	j := join.New(o, pipeline.Host{Out: pipeline.NewOut(c), Counts: c, Log: slog.New(slog.DiscardHandler)})
	take := func(b *arrowio.Batch) (pipeline.Rejects, error) {
		if b.Kind == arrowio.Labelled {
			for i := range b.N {
				lag := (b.LabelTS[i] - b.TS[i]) / second
				rows = append(rows, fmt.Sprintf("%c=%d after %d", b.IDs[i][0], b.Label[i], lag))
			}
		}
		return nil, nil
	}
	for r := range strings.FieldsSeq(records) {
		var kind, id byte
		var at int64
		var err error
		if _, err = fmt.Sscanf(r, "%c%c@%d", &kind, &id, &at); err != nil {
			t.Fatalf("%q: %v", r, err)
		}
		b := &arrowio.Batch{N: 1, IDs: []arrowio.ID{{id}}, TS: []arrowio.Time{at * second},
			Models: []arrowio.ModelKey{{Model: "m", Version: "v1"}}}
		switch kind {
		case 'p':
			b.Kind, b.K, b.Scores = arrowio.Predictions, 3, []float32{1, 0, 0}
			_, err = j.Process(context.Background(), b, take)
		case 'l':
			b.Kind, b.Label = arrowio.Labels, []int32{int32(id - 'a')}
			_, err = j.Process(context.Background(), b, take)
		case 'w':
			err = j.Advance(context.Background(), at*second, take)
		}
		if err != nil {
			t.Fatalf("%q: %v", r, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	counts = c.All()
	for name, n := range counts {
		if n == 0 {
			delete(counts, name)
		}
	}
	slices.Sort(rows)
	return rows, counts
}

// TestWhatMeets: which rows join, in either order of the two topics, and what the others count as. Labels are the id's
// place in the alphabet.
func TestWhatMeets(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          []string
		count         string
		n             int64
	}{
		{"a label after its prediction", "pb@10 lb@15", []string{"b=1 after 5"}, pipeline.CountJoined, 1},
		{"a label before its prediction", "lb@15 pb@10", []string{"b=1 after 5"}, pipeline.CountJoined, 1},
		{"other ids", "pa@10 lb@15", nil, pipeline.CountWaiting, 1},
		{"a label in time, after the watermark", "pa@10 w_@50 la@60", []string{"a=0 after 50"}, pipeline.CountJoined,
			1},
		{"a label that comes too late", "pa@10 w_@200 la@150", nil, pipeline.CountExpired, 1},
		{"a label that nobody waits for", "la@10 w_@200", nil, pipeline.CountOrphans, 1},
		{"the first label wins", "pa@10 la@15 la@16", []string{"a=0 after 5"}, pipeline.CountCorrections, 1},
		{"a repeated prediction", "pa@10 la@15 pa@10", []string{"a=0 after 5"}, pipeline.CountDuplicates, 1},
		{"two of three", "pa@10 pb@11 pc@12 lc@20 la@21", []string{"a=0 after 11", "c=2 after 8"},
			pipeline.CountWaiting, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := join.Options{Config: join.Config{Wait: 100 * time.Second, MaxRows: 1000, Remember: 100}}
			rows, counts := joined(t, o, c.records)
			if !slices.Equal(rows, c.want) || counts[c.count] != c.n {
				t.Errorf("joined %q, %v; want %q, %d %s", rows, counts, c.want, c.n, c.count)
			}
			o.MemoryBytes, o.Dir, o.Name = 1, t.TempDir(), "s"
			disk, same := joined(t, o, c.records)
			if !slices.Equal(disk, rows) || fmt.Sprint(same) != fmt.Sprint(counts) {
				t.Errorf("with rows on disk %q, %v; want %q, %v", disk, same, rows, counts)
			}
		})
	}
}

// TestFullBuffer: beyond max_rows the oldest goes out and is counted.
func TestFullBuffer(t *testing.T) {
	o := join.Options{Config: join.Config{Wait: 100 * time.Second, MaxRows: 2}}
	rows, counts := joined(t, o, "pa@10 pb@11 pc@12 lb@20 lc@20")
	if want := []string{"b=1 after 9", "c=2 after 8"}; !slices.Equal(rows, want) || counts[pipeline.CountEvicted] != 1 {
		t.Errorf("joined %q, %v; want %q, one evicted", rows, counts, want)
	}
}

// TestInlineRowsOfOneID: rows with their labels under one id and many versions are counted, but no more of them are
// remembered, and compared with each further row, than of any other kind.
func TestInlineRowsOfOneID(t *testing.T) {
	const versions, most = 200, 64
	c := pipeline.NewCounts()
	j := join.New(join.Options{Config: join.Config{Wait: time.Hour, MaxRows: 1000, Remember: 1000}},
		pipeline.Host{Out: pipeline.NewOut(c), Counts: c, Log: slog.New(slog.DiscardHandler)})
	pass := func(b *arrowio.Batch) (pipeline.Rejects, error) { return b.Reject, nil }
	for range 2 {
		for v := range versions {
			b := &arrowio.Batch{N: 1, IDs: []arrowio.ID{{'a'}}, TS: []arrowio.Time{second}, K: 2,
				Scores: []float32{1, 0}, Label: []int32{0},
				Models: []arrowio.ModelKey{{Model: "m", Version: fmt.Sprint(v)}}}
			if _, err := j.Process(context.Background(), b, pass); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := c.All()
	if n[pipeline.CountDuplicates] != most || n[pipeline.CountInline] != 2*versions-most {
		t.Errorf("%d remembered, %d inline: want %d, %d", n[pipeline.CountDuplicates], n[pipeline.CountInline], most,
			2*versions-most)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
