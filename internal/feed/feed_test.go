package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

const (
	testStart = arrowio.Time(1_700_000_000_000_000_000)
	testK     = 3
)

// sent is one row as it left.
type sent struct {
	stream    Stream
	partition int32
	model     string
	id        string
	ts        arrowio.Time
	label     string // "" where the message has no label column, "(null)" for null
	scores    string
	others    string // features, served, weight and slices
}

// numbered has n rows, whose number can be read from every column.
func numbered(n int) *Rows {
	r := &Rows{Model: "m", Version: "1", N: n, K: testK, D: 2, Slices: []Column{{Name: "device"}}}
	for i := range n {
		v := float32(i)
		r.Scores = append(r.Scores, v, v+0.25, v+0.5)
		r.Features = append(r.Features, v, -v)
		r.Label = append(r.Label, int32(i%testK))
		r.Served = append(r.Served, v/1000)
		r.Weight = append(r.Weight, v+1)
		r.Slices[0].Values = append(r.Slices[0].Values, "d"+strconv.Itoa(i%2))
	}
	return r
}

func options() Options {
	return Options{
		Partitions: 3,
		EventRate:  100,
		Start:      testStart,
		Batch:      16,
		Seed:       7,
		DelayMin:   500 * time.Millisecond,
		DelayMax:   4 * time.Second,
		IDPrefix:   "p",
		End:        true,
	}
}

func source(t *testing.T, r *Rows, o Order) Source {
	t.Helper()
	s, err := r.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drain(t *testing.T, f *Feed) []Message {
	t.Helper()
	var all []Message
	for {
		m, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	if _, err := f.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: got %v, want io.EOF", err)
	}
	return all
}

func play(t *testing.T, o Options, sources ...Source) []Message {
	t.Helper()
	f, err := NewSequence(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return drain(t, f)
}

// unpack reads the rows of the messages with Arrow's own reader and checks what holds for every message.
func unpack(t *testing.T, messages []Message, partitions int) []sent {
	t.Helper()
	var rows []sent
	for i, m := range messages {
		if len(m.Value) == 0 {
			continue
		}
		got := unpackOne(t, m)
		if len(got) != m.Rows || m.Rows == 0 {
			t.Errorf("message %d: %d rows, says %d", i, len(got), m.Rows)
		}
		if last := got[len(got)-1].ts; last != m.Time {
			t.Errorf("message %d: newest row at %d, says %d", i, last, m.Time)
		}
		if string(m.Key) != got[0].id {
			t.Errorf("message %d: key %q, want its first id %q", i, m.Key, got[0].id)
		}
		for _, r := range got {
			if want := int32(murmur.PartitionOf([]byte(r.id), partitions)); r.partition != want {
				t.Errorf("message %d: id %s on partition %d, want %d", i, r.id, r.partition, want)
			}
		}
		rows = append(rows, got...)
	}
	return rows
}

func unpackOne(t *testing.T, m Message) []sent {
	t.Helper()
	reader, err := ipc.NewReader(bytes.NewReader(m.Value))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	var rows []sent
	for reader.Next() {
		rec := reader.Record()
		base := len(rows)
		for range rec.NumRows() {
			rows = append(rows, sent{stream: m.Stream, partition: m.Partition})
		}
		for c, field := range rec.Schema().Fields() {
			for i := range int(rec.NumRows()) {
				unpackValue(&rows[base+i], field.Name, rec.Column(c), i)
			}
		}
		meta := rec.Schema().Metadata()
		for i := range rows[base:] {
			if k := meta.FindKey("plumbline.model"); k >= 0 {
				rows[base+i].model = meta.Values()[k]
			}
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func unpackValue(r *sent, name string, column arrow.Array, i int) {
	switch name {
	case "id":
		r.id = column.ValueStr(i)
	case "ts":
		r.ts = arrowio.Time(column.(*array.Timestamp).Value(i))
	case "label":
		r.label = column.ValueStr(i)
	case "logits", "probs":
		r.scores = name + column.ValueStr(i)
	default:
		r.others += name + "=" + column.ValueStr(i) + " "
	}
}

func only(rows []sent, s Stream) []sent {
	return slices.DeleteFunc(slices.Clone(rows), func(r sent) bool { return r.stream != s })
}

func TestEveryRowOnce(t *testing.T) {
	const n = 500
	r := numbered(n)
	o := options()
	rows := unpack(t, play(t, o, source(t, r, Order{})), o.Partitions)
	logits, labels := only(rows, Logits), only(rows, Labels)
	if len(logits) != n || len(labels) != n {
		t.Fatalf("got %d predictions and %d labels, want %d of each", len(logits), len(labels), n)
	}
	seen := map[string]sent{}
	for _, p := range logits {
		if _, ok := seen[p.id]; ok {
			t.Errorf("id %s came twice", p.id)
		}
		seen[p.id] = p
	}
	for i := range n {
		p, ok := seen["p-"+strconv.Itoa(i)]
		if !ok {
			t.Fatalf("row %d did not come", i)
		}
		if want := testStart + arrowio.Time(i)*10_000_000; p.ts != want {
			t.Errorf("row %d: time %d, want %d", i, p.ts, want)
		}
		v := float64(i)
		if want := fmt.Sprintf("logits[%v,%v,%v]", v, v+0.25, v+0.5); p.scores != want {
			t.Errorf("row %d: scores %s, want %s", i, p.scores, want)
		}
		for _, want := range []string{
			fmt.Sprintf("features=[%v,%v] ", v, -v), fmt.Sprintf("weight=%v ", v+1), fmt.Sprintf("device=d%d ", i%2),
			fmt.Sprintf("served=%v ", float32(i)/1000),
		} {
			if !strings.Contains(p.others, want) && i > 0 {
				t.Errorf("row %d: columns %q, want %q among them", i, p.others, want)
			}
		}
		if p.label != "" || p.model != "m" {
			t.Errorf("row %d: label %q of model %q, want none of model m", i, p.label, p.model)
		}
	}
	delays := map[arrowio.Time]bool{}
	for _, l := range labels {
		p := seen[l.id]
		delay := l.ts - p.ts
		if delay < arrowio.Time(o.DelayMin) || delay > arrowio.Time(o.DelayMax) {
			t.Errorf("id %s: label after %v, want in [%v, %v]", l.id, time.Duration(delay), o.DelayMin, o.DelayMax)
		}
		delays[delay] = true
		number, _ := strconv.Atoi(strings.TrimPrefix(l.id, "p-"))
		if want := strconv.Itoa(number % testK); l.label != want || l.partition != p.partition || l.model != "m" {
			t.Errorf("id %s: label %s of %s on partition %d, want %s of m on %d", l.id, l.label, l.model, l.partition,
				want, p.partition)
		}
	}
	if len(delays) < n*9/10 {
		t.Errorf("%d different delays of %d labels, want nearly all different", len(delays), n)
	}
}

func TestDeterministic(t *testing.T) {
	run := func(seed uint64) []Message {
		o := options()
		o.Seed = seed
		return play(t, o, source(t, numbered(300), Order{Shuffle: true, Seed: seed, Repeat: 2}))
	}
	a, b := run(1), run(1)
	if len(a) != len(b) {
		t.Fatalf("got %d and %d messages from equal options", len(a), len(b))
	}
	for i := range a {
		if !bytes.Equal(a[i].Value, b[i].Value) || a[i].Time != b[i].Time || a[i].Partition != b[i].Partition {
			t.Fatalf("message %d differs between runs with equal options", i)
		}
	}
	if bytes.Equal(a[0].Value, run(2)[0].Value) {
		t.Error("another seed gave the same first message")
	}
}

// TestOrder: on every partition of a stream event time never falls, over messages and in them, and no row waits
// longer than FlushEvery while the clock goes on.
func TestOrder(t *testing.T) {
	o := options()
	o.Partitions, o.Batch = 5, 1000
	second := numbered(200)
	second.Model = "other"
	messages := play(t, o, source(t, numbered(500), Order{}), source(t, second, Order{}))
	type key struct {
		s Stream
		p int32
	}
	last := map[key]arrowio.Time{}
	newest := arrowio.Time(0)
	for i, m := range messages {
		if len(m.Value) == 0 {
			continue
		}
		rows := unpackOne(t, m)
		for _, r := range rows {
			k := key{m.Stream, m.Partition}
			if r.ts < last[k] {
				t.Errorf("message %d: %v row at %d after one at %d", i, m.Stream, r.ts, last[k])
			}
			last[k] = r.ts
		}
		newest = max(newest, m.Time)
		if oldest := rows[0].ts; newest-oldest > arrowio.Time(DefaultFlushEvery) {
			t.Errorf("message %d: its oldest row waited %v, want at most %v", i, time.Duration(newest-oldest),
				DefaultFlushEvery)
		}
	}
}

// TestPartitionsAndBatchesDoNotMatter: the rows are the same however they are cut.
func TestPartitionsAndBatchesDoNotMatter(t *testing.T) {
	rowSet := func(partitions, batch int, flush time.Duration) []string {
		o := options()
		o.Partitions, o.Batch, o.FlushEvery = partitions, batch, flush
		var set []string
		for _, r := range unpack(t, play(t, o, source(t, numbered(400), Order{Shuffle: true})), partitions) {
			r.partition = 0
			set = append(set, fmt.Sprint(r))
		}
		slices.Sort(set)
		return set
	}
	want := rowSet(1, 1000, time.Hour)
	for _, c := range []struct {
		partitions, batch int
		flush             time.Duration
	}{{4, 16, 0}, {7, 1, 0}, {3, 1000, 50 * time.Millisecond}} {
		if got := rowSet(c.partitions, c.batch, c.flush); !slices.Equal(got, want) {
			t.Errorf("%d partitions, batch %d: other rows than with one partition", c.partitions, c.batch)
		}
	}
}

// TestMessageBytes: messages end before their numbers are more than a message may have; one row may be more by itself.
func TestMessageBytes(t *testing.T) {
	const row = 4 * (testK + 2)
	for bound, most := range map[int]int{0: 16, 10 * row: 10, 11*row - 1: 10, row - 1: 1} {
		o := options()
		o.Partitions, o.MessageBytes = 1, bound
		rows, fullest := 0, 0
		for _, m := range play(t, o, source(t, numbered(400), Order{})) {
			if m.Stream == Logits {
				rows, fullest = rows+m.Rows, max(fullest, m.Rows)
			}
		}
		if rows != 400 || fullest != most {
			t.Errorf("%d bytes: %d rows in messages of up to %d, want 400 in %d", bound, rows, fullest, most)
		}
	}
}

func TestWatermark(t *testing.T) {
	o := options()
	for _, c := range []struct {
		name     string
		change   func(*Options)
		controls int
		want     int64 // pane ends after testStart, which is on a pane edge
	}{
		// The last row is at 4.99 s; its label at most 4 s later.
		{"labels decide", func(*Options) {}, 6, 10},
		{"rows decide", func(o *Options) { o.NoLabels, o.Pane = true, time.Second }, 3, 5},
		{"inline labels", func(o *Options) { o.InlineLabels = true }, 3, 10},
		{"on an edge", func(o *Options) { o.DelayMin, o.DelayMax, o.Limit = 10*time.Second, 10*time.Second, 1 }, 6, 20},
		{"no end", func(o *Options) { o.End = false }, 0, 0},
	} {
		o := o
		c.change(&o)
		messages := play(t, o, source(t, numbered(500), Order{}))
		controls := 0
		for i, m := range messages {
			if len(m.Value) > 0 {
				if controls > 0 {
					t.Errorf("%s: message %d with rows after a control message", c.name, i)
				}
				continue
			}
			controls++
			want := strconv.FormatInt(testStart+c.want*int64(time.Second), 10)
			if m.Value == nil || len(m.Headers) != 1 || m.Headers[0].Key != WatermarkHeader ||
				string(m.Headers[0].Value) != want {
				t.Errorf("%s: control message %+v, want an empty value and %s=%s", c.name, m, WatermarkHeader, want)
			}
		}
		if controls != c.controls {
			t.Errorf("%s: %d control messages, want %d", c.name, controls, c.controls)
		}
	}
	if got := paneEnd(-1, 10); got != 0 {
		t.Errorf("pane end after -1: got %d, want 0", got)
	}
}

func TestInlineLabels(t *testing.T) {
	o := options()
	o.InlineLabels = true
	r := numbered(50)
	r.Label[4] = -1
	rows := unpack(t, play(t, o, source(t, r, Order{})), o.Partitions)
	if len(rows) != 50 {
		t.Fatalf("got %d rows, want 50", len(rows))
	}
	for _, row := range rows {
		number, _ := strconv.Atoi(strings.TrimPrefix(row.id, "p-"))
		want := strconv.Itoa(number % testK)
		if number == 4 {
			want = array.NullValueStr
		}
		if row.label != want {
			t.Errorf("id %s: label %q, want %q", row.id, row.label, want)
		}
	}
}
