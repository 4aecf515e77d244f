package feed

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
)

func ids(t *testing.T, s Source, n int) []string {
	t.Helper()
	var all []string
	var row Row
	for range n {
		err := s.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row.ID)
	}
	return all
}

func TestShuffleAndRepeat(t *testing.T) {
	r := numbered(40)
	for i := range r.N {
		r.IDs = append(r.IDs, "x"+strconv.Itoa(i))
	}
	got := ids(t, source(t, r, Order{Shuffle: true, Seed: 3, Repeat: 3}), 1000)
	if len(got) != 120 {
		t.Fatalf("got %d rows, want 120", len(got))
	}
	var orders [3]string
	for pass := range 3 {
		suffix := ""
		if pass > 0 {
			suffix = "-r" + strconv.Itoa(pass)
		}
		part := slices.Clone(got[pass*40 : (pass+1)*40])
		for i, id := range part {
			part[i] = strings.TrimSuffix(id, suffix)
		}
		orders[pass] = strings.Join(part, " ")
		slices.Sort(part)
		want := slices.Sorted(slices.Values(r.IDs))
		if !slices.Equal(part, want) {
			t.Errorf("pass %d: got ids %v, want every one once with the suffix %q", pass, part, suffix)
		}
	}
	if orders[0] == orders[1] || orders[1] == orders[2] || orders[0] == strings.Join(r.IDs, " ") {
		t.Error("two passes, or a pass and the table, have the same order")
	}
}

func TestByTime(t *testing.T) {
	r := numbered(4)
	r.TS = []arrowio.Time{30, 10, 20, 10}
	o := Options{NoLabels: true}
	rows := unpack(t, play(t, o, source(t, r, Order{ByTime: true})), 1)
	var got []string
	for _, row := range rows {
		got = append(got, fmt.Sprintf("%d %.9s", row.ts, row.scores))
	}
	want := []string{"10 logits[1,", "10 logits[3,", "20 logits[2,", "30 logits[0,"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSkip: a stream in two parts has the rows, ids and times of the stream in one.
func TestSkip(t *testing.T) {
	run := func(skip, limit int64) []string {
		o := options()
		o.Skip, o.Limit = skip, limit
		var all []string
		for _, r := range unpack(t, play(t, o, source(t, numbered(100), Order{Shuffle: true, Repeat: 2})),
			o.Partitions) {
			all = append(all, fmt.Sprint(r))
		}
		slices.Sort(all)
		return all
	}
	parts := append(run(0, 130), run(130, 0)...)
	slices.Sort(parts)
	if whole := run(0, 0); !slices.Equal(parts, whole) || len(whole) != 400 {
		t.Errorf("two parts of %d rows differ from the whole of %d, want 400 equal ones", len(parts), len(whole))
	}
}

func TestSequence(t *testing.T) {
	o := options()
	o.DelayMin, o.DelayMax = 0, 2*time.Second
	second := numbered(50)
	second.Model = "other"
	rows := unpack(t, play(t, o, source(t, numbered(50), Order{}), source(t, second, Order{})), o.Partitions)
	models := map[string]string{}
	for _, r := range only(rows, Logits) {
		models[r.id] = r.model
		number, _ := strconv.Atoi(strings.TrimPrefix(r.id, "p-"))
		if want := testStart + arrowio.Time(number)*10_000_000; r.ts != want {
			t.Errorf("id %s: time %d, want %d: the clock goes on", r.id, r.ts, want)
		}
		if want := map[bool]string{true: "other", false: "m"}[number >= 50]; r.model != want {
			t.Errorf("id %s: model %s, want %s", r.id, r.model, want)
		}
	}
	if len(models) != 100 {
		t.Errorf("got %d ids, want 100", len(models))
	}
	for _, l := range only(rows, Labels) {
		if l.model != models[l.id] {
			t.Errorf("id %s: label of model %s, want %s", l.id, l.model, models[l.id])
		}
	}
}

// endless is a source without end, whose row memory changes under the reader as the contract allows.
type endless struct {
	next   int
	scores [2]float32
}

func (*endless) Schema() Fields { return Fields{Model: "e", K: 2, Probs: true} }

func (e *endless) Next(row *Row) error {
	e.scores = [2]float32{float32(e.next), 1}
	*row = Row{ID: "e" + strconv.Itoa(e.next), Scores: e.scores[:], Label: 1, Weight: 1}
	e.next++
	return nil
}

func TestEndlessSource(t *testing.T) {
	o := Options{EventRate: 50, Partitions: 2, DelayMin: time.Minute, DelayMax: time.Minute, End: true}
	f, err := New(&endless{}, o)
	if err != nil {
		t.Fatal(err)
	}
	var messages []Message
	for len(messages) < 20 {
		m, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	f.Finish()
	messages = append(messages, drain(t, f)...)
	rows := unpack(t, messages, 2)
	logits, labels := only(rows, Logits), only(rows, Labels)
	if len(logits) == 0 || len(logits) != len(labels) {
		t.Errorf("got %d predictions and %d labels, want as many of each", len(logits), len(labels))
	}
	for _, r := range logits {
		if want := fmt.Sprintf("probs[%s,1]", strings.TrimPrefix(r.id, "e")); r.scores != want {
			t.Errorf("id %s: scores %s, want %s", r.id, r.scores, want)
		}
	}
}

type failing struct{ endless }

func (f *failing) Next(row *Row) error {
	if f.next == 3 {
		return errors.New("disk gone")
	}
	return f.endless.Next(row)
}

func TestErrors(t *testing.T) {
	f := func(want string, change func(*Options)) {
		t.Helper()
		o := options()
		change(&o)
		if _, err := New(&endless{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	f("partitions -1", func(o *Options) { o.Partitions = -1 })
	f("event rate NaN", func(o *Options) { o.EventRate = math.NaN() })
	f("maximum label delay 1ms", func(o *Options) { o.DelayMax = time.Millisecond })
	f("label delay -1s", func(o *Options) { o.DelayMin = -time.Second })
	f("batch -2", func(o *Options) { o.Batch = -2 })
	f("limit -1", func(o *Options) { o.Limit = -1 })

	short := numbered(10)
	short.Label = short.Label[:9]
	if _, err := short.Open(Order{}); err == nil ||
		!strings.Contains(err.Error(), "column label: 9 values for 10 rows") {
		t.Errorf("got error %v, want one on the column label", err)
	}
	if _, err := numbered(3).Open(Order{ByTime: true}); err == nil {
		t.Error("order by time without times: got no error")
	}

	feed, err := New(&failing{}, options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Next(); err == nil || !strings.Contains(err.Error(), "row 3: disk gone") {
		t.Errorf("got error %v, want the source's with the row", err)
	}
	late := numbered(2)
	late.TS = []arrowio.Time{1, 2}
	feed, err = NewSequence([]Source{source(t, late, Order{ByTime: true}), source(t, late, Order{ByTime: true})},
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Next(); err == nil || !strings.Contains(err.Error(), "row 2: time 1 is before") {
		t.Errorf("got error %v, want one on row 2's time", err)
	}
}
