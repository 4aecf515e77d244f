package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
)

const unkeyed = "z-unkeyed"

func from(partition, of int32, offset int64, part int32) Provenance {
	return Provenance{Topic: unkeyed, Partition: partition, Of: of, Offset: offset, Part: part}
}

func TestProvenanceHeader(t *testing.T) {
	p := from(3, 8, 1<<40, 2)
	r := Record{Headers: []Header{{"other", nil}, p.AsHeader()}}
	if got, idle, ok, err := provenance(&r); got != p || idle != "" || !ok || err != nil {
		t.Errorf("got %+v %q %v %v, want %+v", got, idle, ok, err, p)
	}
	if _, _, ok, err := provenance(&Record{Headers: []Header{{"other", []byte("1")}}}); ok || err != nil {
		t.Errorf("a record without the header: %v, %v", ok, err)
	}
	for _, bad := range []string{"", "z/1/2/3", "z/1/2/3/4/5", "/0/1/2/3", "z/x/2/3/4", "z/-1/2/3/4", "z/2/2/0/0",
		"z/0/0/0/0", "z/0/99999999/0/0",
		"z/0/1/9223372036854775808/0", "z/0/1/0/4294967296", strings.Repeat("z", maxSourceName+1) + "/0/1/0/0"} {
		if _, _, ok, err := provenance(&Record{Headers: []Header{{SourceHeader, []byte(bad)}}}); !ok || err == nil {
			t.Errorf("%.40q: taken, want an error", bad)
		}
	}
	for _, r := range []Record{
		{Headers: []Header{{SourceIdleHeader, []byte("1")}}},
		{Headers: []Header{{SourceIdleHeader, []byte("2")}, p.AsHeader()}},
		{Headers: []Header{{SourceIdleHeader, []byte("1")}, p.AsHeader()}, Value: []byte("x")},
	} {
		if _, _, _, err := provenance(&r); err == nil {
			t.Errorf("%+v: taken, want an error", r)
		}
	}
}

// TestRepeatsOfSources writes the messages of two sources as restarted and stopped writers do: each goes back to some
// place that was written and goes on from there. Every message is taken once, in order, over restores of the state.
func TestRepeatsOfSources(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var log []Provenance
	for p := range int32(2) {
		at := 0
		for at < 60 {
			at = max(0, at-rng.IntN(9))
			for range 1 + rng.IntN(12) {
				log = append(log, from(p, 2, int64(at/2), int32(at%2)))
				at++
			}
		}
	}
	w, taken, written := NewWatermark(1, 0), map[string]int{}, map[string]bool{}
	last := map[int32]int{0: -1, 1: -1}
	for i, p := range log {
		written[fmt.Sprint(p)] = true
		_, fresh, err := w.source(Logits, p)
		if err != nil {
			t.Fatal(err)
		}
		if fresh {
			taken[fmt.Sprint(p)]++
			if at := int(p.Offset)*2 + int(p.Part); at != last[p.Partition]+1 {
				t.Fatalf("message %d: took %v after number %d", i, p, last[p.Partition])
			}
			last[p.Partition]++
		}
		if i%7 == 0 {
			b, _ := w.AppendState(nil)
			w = NewWatermark(1, 0)
			if err := w.RestoreState(b); err != nil {
				t.Fatal(err)
			}
			if again, _ := w.AppendState(nil); !bytes.Equal(again, b) {
				t.Fatalf("state %x after a restore, want %x", again, b)
			}
		}
	}
	for p := range written {
		if n := taken[p]; n != 1 {
			t.Errorf("%s taken %d times", p, n)
		}
	}
}

func TestWatermarkBySource(t *testing.T) {
	w := NewWatermark(1, 10)
	see := func(p Provenance, ts Time) {
		t.Helper()
		m, fresh, err := w.source(Logits, p)
		if err != nil || !fresh {
			t.Fatalf("%v: fresh %v, %v", p, fresh, err)
		}
		w.Observe(Logits, ts)
		m.newest = max(m.newest, ts)
	}
	want := func(when string, at Time) {
		t.Helper()
		if got, _ := w.Advance(100); got != at {
			t.Errorf("%s: watermark %d, want %d", when, got, at)
		}
	}
	see(from(0, 3, 5, 0), 1000)
	want("two sources have said nothing", NoTime)
	see(from(1, 3, 0, 0), 400)
	if err := w.sourceIdle(Logits, from(2, 3, 0, 0), true); err != nil {
		t.Fatal(err)
	}
	want("the least of two, the third idle", 390)
	see(from(1, 3, 1, 0), 700)
	want("it moves on", 690)
	if err := w.sourceIdle(Logits, from(1, 3, 1, 0), true); err != nil {
		t.Fatal(err)
	}
	want("news that a message has overtaken", 690)
	b, _ := w.AppendState(nil)
	w = NewWatermark(1, 10)
	if err := w.RestoreState(b); err != nil {
		t.Fatal(err)
	}
	see(from(2, 3, 0, 0), 695) // not idle any more
	see(from(1, 3, 2, 0), 2000)
	want("back from idleness", 690)
	m, _, _ := w.source(Logits, from(2, 3, 1, 0))
	m.control = 900
	want("a control record", 900)
	for p := range int32(3) {
		if err := w.sourceIdle(Logits, from(p, 3, 10, 0), true); err != nil {
			t.Fatal(err)
		}
	}
	want("all idle: as without sources", 1990)
	// Another topic takes over: what is known of the first says nothing of it.
	m, _, _ = w.source(Logits, Provenance{Topic: "new", Of: 1})
	m.newest = 5000
	want("a new topic", 4990)
}

// TestPromisesOfIdleSources: what the sources of one input have promised holds when all of them are at their ends, and
// another input goes on.
func TestPromisesOfIdleSources(t *testing.T) {
	w := NewWatermark(2, 10)
	s := &Shard{ShardSpec: ShardSpec{Watermark: w, Host: Host{Counts: NewCounts()}}}
	for p, promise := range []Time{700, 900} {
		m, _, err := w.source(Logits, from(int32(p), 2, 5, 0))
		if err != nil {
			t.Fatal(err)
		}
		w.Observe(Logits, 400)
		m.newest = 400
		s.control(Logits, m, promise, nil)
	}
	s.control(Labels, nil, 900, nil)
	for p := range int32(2) {
		if err := w.sourceIdle(Logits, from(p, 2, 6, 0), true); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := w.Advance(100); got != 900 {
		t.Errorf("watermark %d, want 900", got)
	}
}

// twoSources is a watermark of one input, with rows as late as 10, to which two sources have brought a row each: the
// first at 1000, the second at 400.
func twoSources(t *testing.T) *Watermark {
	t.Helper()
	w := NewWatermark(1, 10)
	for p, ts := range []Time{1000, 400} {
		m, _, err := w.source(Logits, from(int32(p), 2, 5, 0))
		if err != nil {
			t.Fatal(err)
		}
		w.Observe(Logits, ts)
		m.newest = ts
	}
	return w
}

// TestSilenceOfSources: that nothing comes by way of a stage that may have stopped says nothing of sources that have
// not reported as idle, and a source that is read anew is not idle, whatever of it was taken before.
func TestSilenceOfSources(t *testing.T) {
	w := twoSources(t)
	news := func(p Provenance, idle bool) {
		t.Helper()
		if err := w.sourceIdle(Logits, p, idle); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, at Time, idle bool) {
		t.Helper()
		if got, _ := w.Advance(100); got != at || w.AllIdle() != idle {
			t.Errorf("%s: watermark %d, idle %v; want %d, %v", when, got, w.AllIdle(), at, idle)
		}
	}
	want("the least", 390, false)
	w.Idle(Logits)
	want("nothing comes", 390, false)
	news(from(0, 2, 6, 0), true)
	w.Idle(Logits)
	want("nothing comes, and one is idle", 390, false)
	news(from(1, 2, 6, 0), true)
	want("both are idle", 1100, true)
	w = NewWatermark(1, 10)
	m, _, _ := w.source(Logits, from(0, 2, 5, 0))
	m.newest = 1000
	news(from(1, 2, 3, 0), true)
	want("the other is idle", 990, false)
	m.newest = 2000
	m, _, _ = w.source(Logits, from(1, 2, 4, 0))
	m.newest = 1500
	news(from(1, 2, 5, 0), true)
	news(from(1, 2, 0, 0), false) // its reader was killed and had committed nothing
	want("it is read again from the start", 1490, false)
}

// TestSourcesThatAreLeft: who gives up the repartition stage does not wait for what it brought, whatever the checkpoint
// knows; one that speaks again is there again.
func TestSourcesThatAreLeft(t *testing.T) {
	w := twoSources(t)
	if got, _ := w.Advance(100); got != 390 {
		t.Fatalf("watermark %d, want 390", got)
	}
	state, err := w.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	after := NewWatermark(1, 10)
	after.Leave(Logits)
	if err := after.RestoreState(state); err != nil {
		t.Fatal(err)
	}
	after.Observe(Logits, 2000)
	if got, _ := after.Advance(100); got != 1990 {
		t.Errorf("sources that are left: watermark %d, want 1990", got)
	}
	m, _, err := after.source(Logits, from(1, 2, 6, 0))
	if err != nil {
		t.Fatal(err)
	}
	after.Observe(Logits, 3000)
	m.newest = 2500
	if got, _ := after.Advance(100); got != 1990 { // partition 0 is at 1000 still
		t.Errorf("one speaks again: watermark %d, want 1990", got)
	}
}

// TestShardTakesSourcesOnce is the shard's handling of the header: repeats are counted and nothing else, what cannot be
// read is a dead letter, and a stream without the header has the bytes in its checkpoints that it always had.
func TestShardTakesSourcesOnce(t *testing.T) {
	counts := NewCounts()
	s := NewShard(ShardSpec{Inputs: 1, PaneLength: 100, Watermark: NewWatermark(1, 0),
		Decoder: arrowio.NewDecoder(arrowio.Options{}),
		Host: Host{Out: NewOut(counts), Outbox: NewOutbox(0, 1, 100, 1), Counts: counts,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil))}})
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", IDs: []string{"a"}, TS: []int64{250}, K: 2,
		Logits: []float32{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	take := func(offset int64, value []byte, hs ...Header) {
		t.Helper()
		r := Record{Topic: "z", Offset: offset, Value: value, Headers: hs}
		if err := s.Take(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	plain, _ := s.Watermark.AppendState(nil)
	take(0, value)
	if got, _ := s.Watermark.AppendState(nil); len(got) > len(plain)+4 {
		t.Errorf("watermark of a stream without sources takes %d bytes, %d before it", len(got), len(plain))
	}
	take(1, value, from(0, 1, 7, 0).AsHeader())
	take(2, value, from(0, 1, 7, 0).AsHeader())
	take(3, value, from(0, 1, 6, 3).AsHeader())
	take(4, value, Header{SourceHeader, []byte("nonsense")})
	take(5, nil, from(0, 1, 8, 0).AsHeader(), Header{WatermarkHeader, []byte("1000")})
	take(6, nil, from(0, 1, 8, 0).AsHeader(), Header{WatermarkHeader, []byte("2000")}) // a repeat
	take(7, nil, from(0, 1, 9, 0).AsHeader(), Header{SourceIdleHeader, []byte("1")})
	n := counts.All()
	if n["rows:logits"] != 2 || n["repeats:logits"] != 3 || n["dead_letters:source"] != 1 || n["control"] != 2 {
		t.Errorf("counts %v", n)
	}
	if wm := s.Watermark.Now(); wm != 1000 {
		t.Errorf("watermark %d, want 1000: that of the control record", wm)
	}
	if got := s.Next()[Logits]; got != 8 {
		t.Errorf("next offset %d, want 8", got)
	}
}

// letters dead-letters the rows that decoding has rejected.
type letters struct{ out *Out }

func (l letters) Process(_ context.Context, b *arrowio.Batch, _ Emit) (Rejects, error) {
	for i, reason := range b.Reject {
		if reason != "" {
			l.out.Reject(i, reason, "")
		}
	}
	return b.Reject, nil
}
func (letters) Advance(context.Context, Time, Emit) error { return nil }
func (letters) State() State                              { return nil }

// TestShardLeavesOutWhatItHasTaken: of a message of several records a shard takes the rows of those that it has not
// taken, whatever messages these came in, and a dead letter names the records of its rows.
func TestShardLeavesOutWhatItHasTaken(t *testing.T) {
	message := func(offsets ...int64) (value []byte, hs []Header) {
		c := arrowio.Columns{Model: "m", K: 2}
		for _, o := range offsets {
			bad := float32(0)
			if o%10 == 9 {
				bad = float32(math.NaN())
			}
			c.IDs, c.TS, c.Logits = append(c.IDs, fmt.Sprint("id-", o)), append(c.TS, 250), append(c.Logits, bad, 1)
		}
		value, err := arrowio.EncodePredictions(c)
		if err != nil {
			t.Fatal(err)
		}
		hs = []Header{from(0, 1, offsets[len(offsets)-1], 0).AsHeader()}
		if len(offsets) > 1 {
			hs = append(hs, SourceRows(offsets))
		}
		return value, hs
	}
	for _, c := range []struct {
		name    string
		sent    [][]int64
		rows    int64
		repeats int64
		letters string // offsets
	}{
		{"alone, then together", [][]int64{{1}, {2}, {4}, {1, 2, 4, 7}}, 4, 0, ""},
		{"together, then others", [][]int64{{1, 3, 5}, {2, 6}, {3, 5, 8}, {4, 8}}, 5, 1, ""},
		{"all of them", [][]int64{{1, 3, 5}, {1, 3, 5}, {1}, {5}, {1, 5}}, 3, 4, ""},
		{"rows that are refused", [][]int64{{1}, {9}, {5, 9, 18, 19, 20, 29}}, 6, 0, "9 19,29"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := NewCounts()
			out := NewOut(counts)
			s := NewShard(ShardSpec{Inputs: 1, PaneLength: 100, Watermark: NewWatermark(1, 0),
				Decoder: arrowio.NewDecoder(arrowio.Options{}),
				Stages:  []Stage{{Name: "letters", Operator: letters{out}}},
				Host: Host{Out: out, Outbox: NewOutbox(0, 1, 100, 1), Counts: counts,
					Log: slog.New(slog.DiscardHandler)}})
			for i, offsets := range c.sent {
				value, hs := message(offsets...)
				r := Record{Topic: "z", Offset: int64(i), Value: value, Headers: hs}
				if err := s.Take(context.Background(), r); err != nil {
					t.Fatal(err)
				}
			}
			n := counts.All()
			if n["rows:logits"] != c.rows || n["repeats:logits"] != c.repeats {
				t.Errorf("%d rows and %d repeats, want %d and %d", n["rows:logits"], n["repeats:logits"], c.rows,
					c.repeats)
			}
			var letters []string
			for _, m := range s.Out.Drain() {
				at := ""
				for _, h := range m.Headers {
					switch h.Key {
					case SourceHeader:
						at = strings.Split(string(h.Value), "/")[3]
					case "plumbline-source-offsets":
						if first, _, _ := strings.Cut(string(h.Value), ","); first != at {
							t.Errorf("a letter of %s has the source %s", h.Value, at)
						}
						at = string(h.Value)
					}
				}
				letters = append(letters, at)
			}
			if got := strings.Join(letters, " "); got != c.letters {
				t.Errorf("letters of %q, want %q", got, c.letters)
			}
		})
	}
}

// judged is a decoder that keeps whether records were ahead.
type judged struct{ ahead []bool }

func (j *judged) Decode(_ []byte, o arrowio.Origin, _ arrowio.Kind) ([]*arrowio.Batch, error) {
	j.ahead = append(j.ahead, o.Ahead)
	return nil, nil
}

// TestWhoReadsFirstJudgesTheTimestamp: a shard believes the stage before it about a record's timestamp, and tells of
// those that it judges itself.
func TestWhoReadsFirstJudgesTheTimestamp(t *testing.T) {
	var j judged
	counts := NewCounts()
	s := NewShard(ShardSpec{Inputs: 1, PaneLength: 100, Watermark: NewWatermark(1, 0), Decoder: &j,
		Host: Host{Out: NewOut(counts), Outbox: NewOutbox(0, 1, 100, 1), Counts: counts,
			Log: slog.New(slog.DiscardHandler)}})
	mark := Header{SourceAheadHeader, []byte("1")}
	for i, r := range []Record{
		{Ahead: true},
		{Headers: []Header{mark}}, // anybody can write it
		{Ahead: true, Headers: []Header{from(0, 1, 7, 0).AsHeader()}},
		{Headers: []Header{from(0, 1, 8, 0).AsHeader(), mark}},
	} {
		r.Topic, r.Offset, r.Value = "z", int64(i), []byte("x")
		if err := s.Take(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	if want := []bool{true, false, false, true}; !slices.Equal(j.ahead, want) {
		t.Errorf("ahead %v, want %v", j.ahead, want)
	}
	s.ForRun().Gather()
	told := s.Out.Drain()
	if len(told) != 1 || !strings.Contains(string(told[0].Value), `"offsets":"0"`) {
		t.Errorf("told %d: %v", len(told), told)
	}
}

// TestForeignSources: where no unkeyed topic is configured, a header that names one neither holds the shard back nor
// leaves out a row of anybody.
func TestForeignSources(t *testing.T) {
	w := NewWatermark(1, 10)
	w.Leave(Logits)
	counts := NewCounts()
	s := NewShard(ShardSpec{Inputs: 1, PaneLength: 100, Watermark: w, Decoder: arrowio.NewDecoder(arrowio.Options{}),
		Host: Host{Out: NewOut(counts), Outbox: NewOutbox(0, 1, 100, 1), Counts: counts,
			Log: slog.New(slog.DiscardHandler)}})
	value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "1", K: 2, IDs: []string{"a"},
		TS: []Time{1000}, Logits: []float32{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	forged := Provenance{Topic: "u", Partition: 3, Of: maxSources, Offset: math.MaxInt64 - 1}.AsHeader()
	for o := range int64(2) {
		r := Record{Topic: "logits", Offset: o, Time: 1000, Value: value, Headers: []Header{forged}}
		if err := s.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	idle := Header{SourceIdleHeader, []byte("0")}
	if err := s.Take(t.Context(), Record{Topic: "logits", Offset: 2, Headers: []Header{forged, idle}}); err != nil {
		t.Fatal(err)
	}
	all := counts.All()
	if got := w.Now(); got != 990 || all[CountRepeats+":logits"] != 0 || all[CountRows+":logits"] != 2 ||
		all[CountDeadLetters+":source"] != 1 || len(w.sources) != 0 {
		t.Errorf("watermark %d, counts %v, %d sources", got, all, len(w.sources))
	}
}

// TestLettersOfManyRows: a dead letter of the rows of two records of many rows names both.
func TestLettersOfManyRows(t *testing.T) {
	offsets := append(slices.Repeat([]int64{1000010}, 100), 1000011)
	out := sourcesOf([]Header{Provenance{Topic: "z", Of: 1, Offset: 1000011}.AsHeader(), SourceRows(offsets)}, 0,
		func(row int) int { return row + 1 })
	for _, h := range out {
		if h.Key == sourceOffsetsHeader && !strings.Contains(string(h.Value), "1000011") {
			t.Errorf("%s: %s", h.Key, h.Value)
		}
	}
}
