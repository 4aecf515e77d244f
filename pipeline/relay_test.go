package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// relaySource has records at hand in groups: Next of the first of a group would have waited.
type relaySource struct {
	groups    [][]string
	at        int64
	committed []int64
	wait      bool  // at the end: until ctx is done, instead of io.EOF
	refuse    error // of commits
}

func (s *relaySource) Next(ctx context.Context) (Record, error) {
	for len(s.groups) > 0 && len(s.groups[0]) == 0 {
		s.groups = s.groups[1:]
	}
	if len(s.groups) == 0 {
		if !s.wait {
			return Record{}, io.EOF
		}
		<-ctx.Done()
		return Record{}, ctx.Err()
	}
	v := s.groups[0][0]
	s.groups[0] = s.groups[0][1:]
	if v == "pause" {
		return Record{Paused: true}, nil
	}
	s.at++
	return Record{Offset: s.at - 1, Value: []byte(v), Ahead: strings.HasPrefix(v, "ahead")}, nil
}

func (s *relaySource) Buffered() bool { return len(s.groups) > 0 && len(s.groups[0]) > 0 }
func (s *relaySource) CaughtUp() bool { return len(s.groups) == 0 }
func (s *relaySource) Close() error   { return nil }
func (s *relaySource) Commit(_ context.Context, next map[Input]int64) error {
	s.committed = append(s.committed, next[Logits])
	return s.refuse
}

// doubles makes two messages of each record.
type doubles struct{}

func (doubles) Take(r Record) []Message {
	return []Message{{Value: append([]byte("1"), r.Value...)}, {Value: append([]byte("2"), r.Value...)}}
}
func (doubles) Ready(context.Context, *Record) error { return nil }
func (doubles) Opening() []Message                   { return []Message{{Value: []byte("begin")}} }
func (doubles) Gather() []Message                    { return nil }
func (doubles) Release() []Message                   { return nil }

func (doubles) Skip(r Record, why string) []Message {
	return []Message{{Key: []byte("skip"), Value: []byte(why)}}
}
func (doubles) Closing() []Message { return []Message{{Value: []byte("end")}} }

// groupSink keeps what each Write had; it fails from the n-th on.
type groupSink struct {
	writes []string
	fail   int
	with   error // errSink if it is nil
}

var errSink = errors.New("no room")

func (s *groupSink) Write(_ context.Context, ms []Message) error {
	if s.fail > 0 && len(s.writes)+1 >= s.fail {
		return cmp.Or(s.with, errSink)
	}
	var b strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&b, "%s ", m.Value)
	}
	s.writes = append(s.writes, b.String())
	return nil
}
func (s *groupSink) Close() error { return nil }

func newRelay(src *relaySource, sink Sink) *Relay {
	return &Relay{Name: "r", Source: src, Convert: doubles{}, Sink: sink, Next: 0, Interval: time.Hour,
		Log: slog.New(slog.DiscardHandler), Counts: NewCounts(), Status: &RelayStatus{}}
}

// TestRelayWritesAtOnce: what is at hand goes together, a record alone goes alone, and nothing waits for more.
func TestRelayWritesAtOnce(t *testing.T) {
	src, sink := &relaySource{groups: [][]string{{"a", "b", "c"}, {"d"}, {"e", "f"}}}, &groupSink{}
	y := newRelay(src, sink)
	if err := y.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(sink.writes, "| "), "begin | 1a 2a 1b 2b 1c 2c | 1d 2d | 1e 2e 1f 2f "; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if n := len(src.committed); n == 0 || src.committed[n-1] != 6 {
		t.Errorf("committed %v, want 6 at the end", src.committed)
	}
	if st := y.Status.Status(); !st.CaughtUp || st.Next["logits"] != 6 {
		t.Errorf("status %+v", st)
	}
}

// TestRelayPauses says on a pause what is to be said when nobody reads, and takes it for no record.
func TestRelayPauses(t *testing.T) {
	src, sink := &relaySource{groups: [][]string{{"a"}, {"pause"}, {"b"}}}, &groupSink{}
	if err := newRelay(src, sink).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(sink.writes, "| "), "begin | 1a 2a | end | 1b 2b "; got != want ||
		src.committed[len(src.committed)-1] != 2 {
		t.Errorf("wrote %q, want %q; committed %v", got, want, src.committed)
	}
}

// TestRelayBoundsWhatWaits: much at hand is written in pieces.
func TestRelayBoundsWhatWaits(t *testing.T) {
	big := strings.Repeat("x", maxRelayed/4)
	src, sink := &relaySource{groups: [][]string{{big, big, big, big, big}}}, &groupSink{}
	if err := newRelay(src, sink).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, w := range sink.writes {
		if len(w) > maxRelayed+3*len(big) {
			t.Errorf("write %d of %d bytes", i, len(w))
		}
	}
	if len(sink.writes) != 4 {
		t.Errorf("%d writes, want 4, the first before any record", len(sink.writes))
	}
}

// TestRelayCommitsWhatIsWritten: after an error nothing that is not written has been committed.
func TestRelayCommitsWhatIsWritten(t *testing.T) {
	src, sink := &relaySource{groups: [][]string{{"a"}, {"b"}, {"c"}}}, &groupSink{fail: 3}
	y := newRelay(src, sink)
	y.Interval = 0
	if err := y.Run(context.Background()); !errors.Is(err, errSink) {
		t.Fatalf("got %v, want the sink's error", err)
	}
	for _, o := range src.committed {
		if o > 1 {
			t.Errorf("committed %v, written was up to 1", src.committed)
		}
	}
}

// TestRelayTellsThatTheClockIsInDoubt: the first record ahead of the clock is committed before another is taken, so
// that the answer to what is written of it tells the time of the brokers; the next ones are not.
func TestRelayTellsThatTheClockIsInDoubt(t *testing.T) {
	src, sink := &relaySource{groups: [][]string{{"a", "ahead1", "b", "ahead2", "c"}}}, &groupSink{}
	if err := newRelay(src, sink).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	const want = "begin | 1a 2a 1ahead1 2ahead1 | 1b 2b 1ahead2 2ahead2 1c 2c "
	if got := strings.Join(sink.writes, "| "); got != want || len(src.committed) == 0 || src.committed[0] != 2 {
		t.Errorf("wrote %q, committed %v; want %q, and 2 first", got, src.committed, want)
	}
}

// TestRelayEndsWhereItCannotWrite: errors of the sink that look like those of a source's wait, or of its end, are none
// of those. What was read would be lost, for the next commit is behind it.
func TestRelayEndsWhereItCannotWrite(t *testing.T) {
	for _, with := range []error{fmt.Errorf("write: %w", context.DeadlineExceeded), fmt.Errorf("write: %w", io.EOF)} {
		src, sink := &relaySource{groups: [][]string{{"a"}, {"b"}}}, &groupSink{fail: 2, with: with}
		if err := newRelay(src, sink).Run(t.Context()); !errors.Is(err, with) {
			t.Errorf("%v, want %v", err, with)
		}
		for _, o := range src.committed {
			if o > 0 {
				t.Errorf("%v: committed %v, and nothing was written", with, src.committed)
			}
		}
	}
}

// TestRelayStops says at the end what is to be said then, and commits; but where the group has gone on without it, it
// says nothing: who reads now may have said otherwise.
func TestRelayStops(t *testing.T) {
	for want, refuse := range map[string]error{"begin | 1a 2a | end ": errors.New("the broker is away"),
		"begin | 1a 2a ": fmt.Errorf("%w: another generation", ErrFenced)} {
		src, sink := &relaySource{groups: [][]string{{"a"}}, wait: true, refuse: refuse}, &groupSink{}
		y := newRelay(src, sink)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- y.Run(ctx) }()
		eventually.True(t, "the first record is relayed", func() bool {
			st := y.Status.Status()
			return st != nil &&
				st.Next["logits"] == 1
		})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sink.writes, "| "); got != want || src.committed[len(src.committed)-1] != 1 {
			t.Errorf("commits answered with %v: wrote %q, want %q; committed %v", refuse, got, want, src.committed)
		}
	}
}

// TestRelayPassesOver: a record that the guard names is not converted, and the guard hears of those that are.
func TestRelayPassesOver(t *testing.T) {
	var written []string
	sink := &failSink{journal: &journal{}, fail: func(ms []Message) error {
		for _, m := range ms {
			written = append(written, string(m.Value))
		}
		return nil
	}}
	g := &passer{offset: 1}
	source := &relaySource{groups: [][]string{{"a", "b", "c"}}}
	relay := &Relay{Name: "r", Source: source, Convert: doubles{}, Sink: sink, Input: Logits, Next: -1,
		Interval: time.Hour, Log: slog.New(slog.DiscardHandler), Counts: NewCounts(), Status: &RelayStatus{}, Guard: g}
	if err := relay.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(written, " "), "begin 1a 2a it ended the task 1c 2c"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
	want := "taking 0, taken, saved 2, taking 2, taken, taking 2, taken, saved 3" // again for what is held
	if got := strings.Join(g.told, ", "); got != want {
		t.Errorf("the guard was told %q, want %q", got, want)
	}
}

// refusingSink refuses every message for good.
type refusingSink struct{ writes int }

func (s *refusingSink) Write(_ context.Context, ms []Message) error {
	s.writes++
	by := map[Refusal]int64{}
	for _, m := range ms {
		by[Refusal{cmp.Or(m.Stream, StreamLogits), "too_large"}]++
	}
	return &RefusedError{By: by, Err: errSink}
}
func (s *refusingSink) Close() error { return nil }

// TestRefusedOutputsStopNobody: what is refused for good is counted, and the relay goes on to its end.
func TestRefusedOutputsStopNobody(t *testing.T) {
	src, sink := &relaySource{groups: [][]string{{"a", "b"}, {"c"}}}, &refusingSink{}
	y := newRelay(src, sink)
	if err := y.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := y.Counts.All()["outputs_refused:logits"]; n < 6 || src.committed[len(src.committed)-1] != 3 {
		t.Errorf("%d refused outputs, committed %v; want 6 at least, and 3", n, src.committed)
	}
	counts := NewCounts()
	write := func(ms ...Message) error { return lossySink{sink, counts}.Write(context.Background(), ms) }
	if err := write(Message{Stream: StreamDeadLetter}, Message{Stream: StreamPanes}); err != nil {
		t.Error(err)
	}
	if n := counts.All(); n["dead_letters_refused:too_large"] != 1 || n["outputs_refused:panes"] != 1 {
		t.Errorf("counts %v", n)
	}
}

// TestRelayConfirms asks before it commits, whether there are messages or not; what it was not told of is not written.
func TestRelayConfirms(t *testing.T) {
	gone := errors.New("another topic")
	src, sink := &relaySource{wait: true}, &groupSink{}
	y := newRelay(src, sink)
	y.Interval = 0
	y.Confirm = func(context.Context) error { return gone }
	if err := y.Run(t.Context()); !errors.Is(err, gone) || len(src.committed) != 0 {
		t.Errorf("without records: %v, committed %v", err, src.committed)
	}
	src = &relaySource{groups: [][]string{{"a"}}, wait: true}
	y = newRelay(src, sink)
	ctx, cancel := context.WithCancel(t.Context())
	y.Confirm = func(context.Context) error { cancel(); return nil }
	if err := y.Run(ctx); err != nil || src.committed[len(src.committed)-1] != 0 {
		t.Errorf("at the end: %v, committed %v, want 0", err, src.committed)
	}
	if got := strings.Join(sink.writes, "| "); strings.Contains(got, "1a") {
		t.Errorf("wrote %q", got)
	}
}

// heldUp makes one message of what was taken, where it is released.
type heldUp struct {
	doubles
	value []byte
	fail  string // a release with it ends in a panic
}

func (p *heldUp) Take(r Record) []Message {
	if r.Paused {
		return p.Release()
	}
	p.value = append(p.value, r.Value...)
	return nil
}

func (p *heldUp) Release() []Message {
	if len(p.value) == 0 {
		return nil
	}
	if string(p.value) == p.fail {
		panic(p.fail)
	}
	ms := []Message{{Value: p.value}}
	p.value = nil
	return ms
}

// TestRelayHolds: what is at hand together may become one message, which is written before its records count as read.
func TestRelayHolds(t *testing.T) {
	for fail, want := range map[string]string{"": "begin | abc | end | d | ef ", "d": "begin | abc | end "} {
		src, sink := &relaySource{groups: [][]string{{"a", "b", "c"}, {"pause"}, {"d"}, {"e", "f"}}}, &groupSink{}
		y := newRelay(src, sink)
		y.Convert, y.Interval = &heldUp{fail: fail}, 0
		err := y.Run(context.Background())
		if (err != nil) != (fail != "") {
			t.Fatal(err)
		}
		if got := strings.Join(sink.writes, "| "); got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
		committed := []int64{3, 4, 6}
		if fail != "" {
			committed = committed[:1]
		}
		if got := slices.Compact(src.committed); !slices.Equal(got, committed) {
			t.Errorf("committed %v, want %v", got, committed)
		}
	}
}

// asks notes which records are followed.
type asks struct {
	doubles
	followed []bool
}

func (a *asks) Take(r Record) []Message {
	a.followed = append(a.followed, r.Alone)
	return nil
}

// TestRelayFollows: what converts a record knows whether the tracer follows it.
func TestRelayFollows(t *testing.T) {
	for _, ratio := range []float64{0, 1} {
		y := newRelay(&relaySource{groups: [][]string{{"a", "b"}}}, &groupSink{})
		a := &asks{}
		y.Convert = a
		y.Trace = tracing.NewLane(tracing.Settings{Tracer: &tracing.Tracer{Ratio: ratio, Export: func(tracing.Span) {}},
			Topic: func(string) string { return "" }})
		if err := y.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if want := []bool{ratio == 1, ratio == 1}; !slices.Equal(a.followed, want) {
			t.Errorf("ratio %g: followed %v, want %v", ratio, a.followed, want)
		}
	}
}

// defective holds records; "alone" releases the others first, "poison" does so, too, and panics.
type defective struct {
	doubles
	value []byte
}

func (p *defective) Take(r Record) []Message {
	if string(r.Value) == "poison" {
		p.Release() // as repartition.Converter.hold does for a record that goes alone
		panic("poison")
	}
	p.value = append(p.value, r.Value...)
	return nil
}

func (p *defective) Release() []Message {
	if len(p.value) == 0 {
		return nil
	}
	ms := []Message{{Value: p.value}}
	p.value = nil
	return ms
}

// TestRelayWithDefect: what was held when a record panics is written, or not committed.
func TestRelayWithDefect(t *testing.T) {
	for _, interval := range []time.Duration{0, time.Hour} {
		src, sink := &relaySource{groups: [][]string{{"a", "b", "poison", "c"}}}, &groupSink{}
		y := newRelay(src, sink)
		y.Convert, y.Interval = &defective{}, interval
		err := y.Run(context.Background())
		if err == nil {
			t.Fatal("no error")
		}
		written := strings.Join(sink.writes, "| ")
		if slices.Contains(src.committed, 2) && !strings.Contains(written, "ab") {
			t.Errorf("interval %v: committed %v, written %q", interval, src.committed, written)
		}
	}
}

// blames is a guard that remembers at which record the relay ended, and has those that ended it twice skipped.
type blames struct {
	passer
	at    int64
	times int
}

func (b *blames) Suspects(r Record) bool { return b.times > 0 && r.Offset <= b.at }
func (b *blames) Pass(r Record, over func(why string) bool) bool {
	return b.times > 1 && r.Offset == b.at && over("twice")
}

// TestRelayFindsTheDefect: where a message of several records ends the relay, they go alone the next time, so that the
// one that is why is found and skipped, and the others are not lost.
func TestRelayFindsTheDefect(t *testing.T) {
	sink, guard := &groupSink{}, &blames{}
	for range 9 {
		src := &relaySource{groups: [][]string{{"a", "b", "x", "c"}}}
		y := newRelay(src, sink)
		y.Convert, y.Guard = &oneByOne{}, guard
		err := y.Run(context.Background())
		if err == nil {
			break
		}
		var at *TakeError
		if !errors.As(err, &at) {
			t.Fatal(err)
		}
		if guard.times++; guard.at != at.Offset {
			guard.at, guard.times = at.Offset, 1
		}
	}
	if got, want := strings.Join(sink.writes, ""), "begin begin begin begin a b twice c "; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// oneByOne holds what need not go alone; to write x is its defect.
type oneByOne struct {
	doubles
	value string
}

func (p *oneByOne) Take(r Record) []Message {
	if p.value += string(r.Value); r.Alone {
		return p.Release()
	}
	return nil
}

func (p *oneByOne) Release() []Message {
	if strings.Contains(p.value, "x") {
		panic("x")
	}
	ms := []Message{{Value: []byte(p.value)}}
	if p.value = ""; len(ms[0].Value) == 0 {
		return nil
	}
	return ms
}

func (*oneByOne) Skip(_ Record, why string) []Message { return []Message{{Value: []byte(why)}} }
