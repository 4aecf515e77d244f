package kafkaio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// patience bounds every wait on the in-process broker.
const patience = 15 * time.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newClient(t testing.TB, brokers []string) *kafka.Client {
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}
}

func message(topic string, partition int, value string, at int64) kafka.Message {
	return kafka.Message{Topic: topic, Partition: partition, Value: []byte(value), Key: []byte("k-" + value),
		Time: time.UnixMilli(at), Headers: []kafka.Header{{Key: "h", Value: []byte(value)}}}
}

func source(t testing.TB, spec Spec) *Source {
	t.Helper()
	if spec.MaxBytes == 0 {
		spec.MaxBytes = 1 << 20
	}
	spec.Log = quiet
	s := NewSource(spec)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// read takes records until the source ends or stop says so.
func read(t testing.TB, s *Source, stop func(r pipeline.Record) bool) []pipeline.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out []pipeline.Record
	for {
		r, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("after %d records: %v", len(out), err)
		}
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value) // they are the source's
		out = append(out, r)
		if stop != nil && stop(r) {
			return out
		}
	}
}

func values(rs []pipeline.Record) string {
	var out []string
	for _, r := range rs {
		if r.Idle {
			out = append(out, "idle:"+r.Input.String())
			continue
		}
		out = append(out, string(r.Value))
	}
	return strings.Join(out, " ")
}

var both = map[pipeline.Input]string{pipeline.Logits: "z", pipeline.Labels: "y"}

func at(logits, labels int64) map[pipeline.Input]int64 {
	return map[pipeline.Input]int64{pipeline.Logits: logits, pipeline.Labels: labels}
}

// TestSilenceOfSources: what says that a source of the repartition stage is silent is no news of the partition that it
// is in, which would be waited for once more; what says that the source is read again is.
func TestSilenceOfSources(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	s := source(t, Spec{Client: newClient(t, brokers), Topics: map[pipeline.Input]string{pipeline.Logits: "z"},
		Next: map[pipeline.Input]int64{pipeline.Logits: -1}, IdleTimeout: 30 * time.Millisecond})
	read(t, s, func(r pipeline.Record) bool { return r.Idle })
	for _, idle := range []int{1, 0} {
		kafkatest.Write(t, brokers, kafka.Message{Topic: "z", Time: time.UnixMilli(1060),
			Headers: []kafka.Header{{Key: pipeline.SourceHeader, Value: []byte("raw/0/1/7/0")},
				{Key: pipeline.SourceIdleHeader, Value: []byte(fmt.Sprint(idle))}}})
		read(t, s, func(pipeline.Record) bool { return true })
		if got := s.Silent(); len(got) != 1-idle {
			t.Errorf("a source says idle = %d: %d inputs are waited for, want %d", idle, len(got), 1-idle)
		}
	}
}

// TestSource covers order, bounds, idleness and position over one broker.
func TestSource(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "z", "y", "empty")
	client := newClient(t, brokers)
	var ms []kafka.Message
	for i := range int64(6) {
		ms = append(ms, message("z", 1, fmt.Sprint("z", i), 1000+10*i))
	}
	kafkatest.Write(t, brokers, ms...)
	kafkatest.Write(t, brokers, message("y", 1, "y0", 1015), message("y", 1, "y1", 1016), message("y", 1, "y2", 1055),
		message("z", 0, "other partition", 1))

	t.Run("the older record first", func(t *testing.T) {
		rs := read(t, source(t, Spec{Client: client, Topics: both, Partition: 1, Next: at(-1, -1), Until: at(6, 3)}),
			nil)
		if got, want := values(rs), "z0 z1 y0 y1 z2 z3 z4 z5 y2"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if r := rs[2]; r.Input != pipeline.Labels || r.Topic != "y" || r.Partition != 1 || r.Offset != 0 ||
			r.Time != 1015e6 || string(r.Key) != "k-y0" || len(r.Headers) != 1 || r.Headers[0].Key != "h" {
			t.Errorf("record %+v", r)
		}
	})
	t.Run("from and until", func(t *testing.T) {
		rs := read(t, source(t, Spec{Client: client, Topics: both, Partition: 1, Next: at(2, 1), Until: at(4, 2)}), nil)
		if got, want := values(rs), "y1 z2 z3"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("until the start of an empty log", func(t *testing.T) {
		s := source(t, Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Logits: "empty"},
			Next: map[pipeline.Input]int64{pipeline.Logits: 0}, Until: map[pipeline.Input]int64{pipeline.Logits: 0}})
		if rs := read(t, s, nil); len(rs) != 0 {
			t.Errorf("read %s", values(rs))
		}
	})
	t.Run("idle once, and again after a record", func(t *testing.T) {
		s := source(t, Spec{Client: client, Topics: both, Partition: 1, Next: at(5, 3),
			IdleTimeout: 30 * time.Millisecond})
		idle := 0
		rs := read(t, s, func(r pipeline.Record) bool {
			if r.Idle {
				idle++
			}
			return idle == 2
		})
		if got := values(rs[:1]); got != "z5" || idle != 2 || !s.CaughtUp() {
			t.Errorf("read %s, caught up %v", values(rs), s.CaughtUp())
		}
		kafkatest.Write(t, brokers, message("z", 1, "z6", 1060))
		rs = read(t, s, func(r pipeline.Record) bool { return r.Idle })
		if got := values(rs); got != "z6 idle:logits" {
			t.Errorf("then read %s, want z6 and idleness of its input alone", got)
		}
	})
	t.Run("not caught up while records are left", func(t *testing.T) {
		s := source(t, Spec{Client: client, Topics: both, Partition: 1, Next: at(-1, -1)})
		read(t, s, func(r pipeline.Record) bool {
			last := string(r.Value) == "z6"
			if !last && s.CaughtUp() {
				t.Errorf("caught up after %s", r.Value)
			}
			return last
		})
		eventually.True(t, "caught up", s.CaughtUp)
	})
	t.Run("offset that is gone", func(t *testing.T) {
		s := source(t, Spec{Client: client, Topics: both, Partition: 1, Next: at(1000, -1)})
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var err error
		for err == nil {
			_, err = s.Next(ctx)
		}
		if !errors.Is(err, kafka.OffsetOutOfRange) || !strings.Contains(err.Error(), "1000") {
			t.Errorf("error %v, want one that names the offset", err)
		}
	})
	t.Run("canceled", func(t *testing.T) {
		s := source(t, Spec{Client: client, Topics: map[pipeline.Input]string{pipeline.Logits: "empty"},
			Next: map[pipeline.Input]int64{pipeline.Logits: 0}})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline's", err)
		}
	})
	t.Run("bounds and partitions", func(t *testing.T) {
		first, end, err := Bounds(context.Background(), client, "z", 1)
		if err != nil || first != 0 || end != 7 {
			t.Errorf("bounds %d to %d, %v, want 0 to 7", first, end, err)
		}
		if n, err := Partitions(context.Background(), client, "z"); err != nil || n != 2 {
			t.Errorf("%d partitions, %v", n, err)
		}
		if _, err := Partitions(context.Background(), client, "absent"); err == nil ||
			!strings.Contains(err.Error(), "absent") {
			t.Errorf("a topic that is absent: %v", err)
		}
	})
}

// TestTransactionMarkersAreNoRecords writes through a transactional producer: the control markers between and after
// the records take offsets, and must neither be handed out nor keep the source from being caught up.
func TestTransactionMarkersAreNoRecords(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	kc, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic("z"))
	if err != nil {
		t.Fatal(err)
	}
	defer kc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 3 {
		if err := kc.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := kc.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint("a", i)),
			kgo.StringRecord(fmt.Sprint("b", i))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := kc.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	client := newClient(t, brokers)
	_, end, err := Bounds(ctx, client, "z", 0)
	if err != nil || end != 9 {
		t.Fatalf("the log ends at %d, %v; want 9: six records and three markers", end, err)
	}
	logits := map[pipeline.Input]string{pipeline.Logits: "z"}
	rs := read(t, source(t, Spec{Client: client, Topics: logits, Next: map[pipeline.Input]int64{pipeline.Logits: -1},
		Until: map[pipeline.Input]int64{pipeline.Logits: end}}), nil)
	if got, want := values(rs), "a0 b0 a1 b1 a2 b2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if rs[2].Offset != 3 {
		t.Errorf("a1 has offset %d, want 3: after a marker", rs[2].Offset)
	}
	s := source(t, Spec{Client: client, Topics: logits, Next: map[pipeline.Input]int64{pipeline.Logits: 7},
		IdleTimeout: 30 * time.Millisecond})
	rs = read(t, s, func(r pipeline.Record) bool { return r.Idle })
	if at, err := AtEnd(ctx, client, s.Reached()); !at || err != nil {
		t.Errorf("at the end: %t, %v", at, err)
	}
	if got := values(rs); got != "b2 idle:logits" || !s.CaughtUp() {
		t.Errorf("got %s, caught up %v; want idleness at the last marker", got, s.CaughtUp())
	}
}

func TestSinkPlacesAndKeepsOrder(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 4, "panes", "alerts")
	client := newClient(t, brokers)
	s, err := NewSink(context.Background(), client, map[pipeline.Stream]string{pipeline.StreamPanes: "panes",
		pipeline.StreamAlerts: "alerts"}, 1<<16, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var ms []pipeline.Message
	big := strings.Repeat("x", 1<<14)
	for i := range 12 {
		ms = append(ms, pipeline.Message{Stream: pipeline.StreamPanes, Partition: int32(i % 5),
			Value: []byte(fmt.Sprint(i, " ", big)), Time: int64(1+i) * 1e9})
	}
	key := []byte("m/v//rule")
	ms = append(ms, pipeline.Message{Stream: pipeline.StreamAlerts, Partition: -1, Key: key, Value: []byte("alert"),
		Headers: []pipeline.Header{{Key: "a", Value: []byte("b")}}},
		pipeline.Message{Stream: pipeline.StreamDecisions, Partition: -1, Value: []byte("a stream without a topic")})
	if err := s.Write(context.Background(), ms); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	last := map[int]int{}
	got := kafkatest.ReadAll(t, brokers, "panes")
	for _, m := range got {
		var i int
		if _, err := fmt.Sscan(string(m.Value[:3]), &i); err != nil {
			t.Fatal(err)
		}
		if m.Partition != i%5%4 || i < last[m.Partition] || !m.Time.Equal(time.Unix(int64(1+i), 0)) || m.Key != nil {
			t.Errorf("message %d in partition %d after %d, at %s, key %q", i, m.Partition, last[m.Partition], m.Time,
				m.Key)
		}
		last[m.Partition] = i
	}
	if len(got) != 12 {
		t.Errorf("%d messages, want 12", len(got))
	}
	alerts := kafkatest.ReadAll(t, brokers, "alerts")
	if len(alerts) != 1 || alerts[0].Partition != murmur.PartitionOf(key, 4) ||
		string(alerts[0].Key) != string(key) || len(alerts[0].Headers) != 1 ||
		string(alerts[0].Headers[0].Value) != "b" {
		t.Errorf("alerts %+v, want one in partition %d", alerts, murmur.PartitionOf(key, 4))
	}
	if _, err := NewSink(context.Background(), client, map[pipeline.Stream]string{pipeline.StreamPanes: "absent"},
		1<<16, quiet); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("sink on a topic that is absent: %v", err)
	}
	for i := range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close %d: %v", i+1, err)
		}
	}
}

// flaky breaks every connection while down is set.
type flaky struct {
	down  atomic.Bool
	tries atomic.Int64
}

func (f *flaky) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.tries.Add(1)
	if f.down.Load() {
		return nil, errors.New("the network is down")
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func TestSinkTriesAgain(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "panes")
	var f flaky
	transport := &kafka.Transport{Dial: f.dial, IdleTimeout: time.Millisecond}
	defer transport.CloseIdleConnections()
	s, err := NewSink(context.Background(), &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport},
		map[pipeline.Stream]string{pipeline.StreamPanes: "panes"}, 1<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	transport.CloseIdleConnections()
	f.down.Store(true)
	before := f.tries.Load()
	done := make(chan error, 1)
	go func() {
		done <- s.Write(context.Background(), []pipeline.Message{{Stream: pipeline.StreamPanes, Partition: 0,
			Key: []byte("k"), Value: []byte("v")}})
	}()
	eventually.True(t, "tried", func() bool { return f.tries.Load() > before })
	f.down.Store(false)
	if err := <-done; err != nil {
		t.Fatalf("write through an outage: %v", err)
	}
	got := kafkatest.ReadAll(t, brokers, "panes")
	if len(got) != 1 || string(got[0].Value) != "v" || string(got[0].Key) != "k" {
		t.Errorf("messages %v, want one, whole", got)
	}
	f.down.Store(true)
	transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Write(ctx, []pipeline.Message{{Stream: pipeline.StreamPanes, Value: []byte("v")}}); err == nil {
		t.Error("written while the network was down")
	}
}

func TestSinkGivesUpOnWhatCannotWork(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "panes")
	s, err := NewSink(context.Background(), newClient(t, brokers),
		map[pipeline.Stream]string{pipeline.StreamPanes: "panes"}, 64<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = s.Write(ctx, []pipeline.Message{{Stream: pipeline.StreamPanes, Value: make([]byte, 20<<20)}})
	if !errors.Is(err, kafka.MessageSizeTooLarge) || ctx.Err() != nil {
		t.Errorf("20 MB where 16 are allowed: %v", err)
	}
}

// TestSinkLosesWhatIsRefusedForGood: what no broker will ever take is dropped and named, and everything beside it is
// written, in order.
func TestSinkLosesWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "panes", "letters")
	s, err := NewSink(context.Background(), newClient(t, brokers), map[pipeline.Stream]string{
		pipeline.StreamPanes:      "panes",
		pipeline.StreamDeadLetter: "letters",
	}, 1<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ms []pipeline.Message
	for i := range 9 {
		for _, stream := range []pipeline.Stream{pipeline.StreamPanes, pipeline.StreamDeadLetter} {
			m := pipeline.Message{Stream: stream, Value: fmt.Append(nil, i)}
			if i%4 == 1 {
				m.Value = make([]byte, 20<<20) // where 16 MB are allowed
			}
			ms = append(ms, m)
		}
	}
	err = s.Write(ctx, ms)
	var refused *pipeline.RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, kafka.MessageSizeTooLarge) || !maps.Equal(refused.By,
		map[pipeline.Refusal]int64{{Stream: pipeline.StreamPanes, Reason: "too_large"}: 2,
			{Stream: pipeline.StreamDeadLetter, Reason: "too_large"}: 2}) {
		t.Errorf("error %v, %+v; want two of each stream refused", err, refused)
	}
	for _, topic := range []string{"panes", "letters"} {
		var got []string
		for _, m := range kafkatest.ReadAll(t, brokers, topic) {
			got = append(got, string(m.Value))
		}
		if want := "0 2 3 4 6 7 8"; strings.Join(got, " ") != want {
			t.Errorf("%s has %v, want %s", topic, got, want)
		}
	}
}

// TestSinkLosesDeadLettersOfALostTopic: without their topic dead letters are given up, which no other output is.
func TestSinkLosesDeadLettersOfALostTopic(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "letters")
	client := newClient(t, brokers)
	s, err := NewSink(context.Background(), client,
		map[pipeline.Stream]string{pipeline.StreamDeadLetter: "letters"}, 1<<20, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{"letters"}}); err != nil {
		t.Fatal(err)
	}
	s.absent["letters"] = time.Now().Add(-time.Hour)
	err = s.Write(ctx, []pipeline.Message{{Stream: pipeline.StreamDeadLetter, Value: []byte("v")}})
	var refused *pipeline.RefusedError
	lost := pipeline.Refusal{Stream: pipeline.StreamDeadLetter, Reason: "topic"}
	if !errors.As(err, &refused) || refused.By[lost] != 1 {
		t.Errorf("error %v, want one dead letter refused", err)
	}
}

// works records who works on which partition, and fails the test when two do at once.
type works struct {
	t  *testing.T
	mu sync.Mutex
	by map[int]string
	// told is what members were told of their partitions last.
	told map[string]string
}

func (w *works) work(member string) func(context.Context, int, CommitFunc) error {
	return func(ctx context.Context, p int, commit CommitFunc) error {
		w.mu.Lock()
		if other, busy := w.by[p]; busy {
			w.t.Errorf("%s got partition %d while %s works on it", member, p, other)
		}
		w.by[p] = member
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			delete(w.by, p)
			w.mu.Unlock()
		}()
		if err := commit(ctx, map[string]int64{"z": int64(p) + 5}); err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// has checks that a member is told its partitions before their work, and the end of a generation after it.
func (w *works) has(name string) func([]int, bool) {
	return func(partitions []int, member bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for p, m := range w.by {
			if m == name {
				w.t.Errorf("%s works on partition %d while it is told of %v, a member: %t", m, p, partitions, member)
			}
		}
		if w.told == nil {
			w.told = map[string]string{}
		}
		w.told[name] = fmt.Sprint(partitions, member)
	}
}

// state lists the workers by partition.
func (w *works) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for p, m := range w.by {
		out = append(out, fmt.Sprintf("%d%s", p, m))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestGroupGivesEveryPartitionToOneMember: one member has all, a second takes some over, and what it leaves comes back.
func TestGroupGivesEveryPartitionToOneMember(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 4, "z", "y")
	w := &works{t: t, by: map[int]string{}}
	join := func(name string) (leave func()) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		g := Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z", "y"},
			Log: quiet, Client: newClient(t, brokers), Has: w.has(name)}
		go func() { done <- g.Run(ctx, w.work(name)) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("member %s: %v", name, err)
			}
		}
	}
	leaveA := join("a")
	eventually.True(t, "all with a", func() bool { return w.state() == "0a 1a 2a 3a" })
	leaveB := join("b")
	eventually.True(t, "two each", func() bool {
		s := w.state()
		return strings.Count(s, "a") == 2 &&
			strings.Count(s, "b") == 2
	})
	leaveA()
	eventually.True(t, "all with b", func() bool { return w.state() == "0b 1b 2b 3b" })
	res, err := newClient(t, brokers).OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: "g",
		Topics: map[string][]int{"z": {0, 1, 2, 3}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Topics["z"] {
		if p.CommittedOffset != int64(p.Partition)+5 {
			t.Errorf("partition %d: committed %d, want %d", p.Partition, p.CommittedOffset, p.Partition+5)
		}
	}
	if told := w.told["b"]; told != "[0 1 2 3] true" {
		t.Errorf("b was told %s", told)
	}
	leaveB()
	if s := w.state(); s != "" {
		t.Errorf("%s still work after all have left", s)
	}
	if told := w.told["b"]; told != "[] false" {
		t.Errorf("b was told %s at the end", told)
	}
}

// TestGroupGoesOnAfterAnError: work that ends is begun again, in another generation.
func TestGroupGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n := 0
	err := (&Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"},
		Log: quiet, Client: newClient(t, brokers)}).Run(ctx, func(context.Context, int, CommitFunc) error {
		if n++; n == 2 {
			cancel()
		}
		return errors.New("once more")
	})
	if err != nil || n != 2 {
		t.Errorf("%v after %d attempts, want none after 2", err, n)
	}
}

// TestCopartition: whatever the order in which members and partitions are listed, every number has one member, and the
// loads differ by one at most.
func TestCopartition(t *testing.T) {
	for members := 1; members <= 7; members++ {
		for partitions := 1; partitions <= 9; partitions++ {
			var ms []kafka.GroupMember
			for i := range members {
				ms = append(ms, kafka.GroupMember{ID: fmt.Sprint("m", 9-i), Topics: []string{"z", "y"}})
			}
			var ps []kafka.Partition
			for i := range partitions {
				ps = append(ps, kafka.Partition{Topic: "z", ID: i})
				ps = slices.Insert(ps, 0, kafka.Partition{Topic: "y", ID: i})
			}
			got := copartition{}.AssignGroups(ms, ps)
			owner := map[int]string{}
			least, most := partitions, 0
			for m, topics := range got {
				slices.Sort(topics["z"])
				slices.Sort(topics["y"])
				if !slices.Equal(topics["z"], topics["y"]) {
					t.Fatalf("%d members, %d partitions: %s has %v", members, partitions, m, topics)
				}
				for _, p := range topics["z"] {
					owner[p] = m
				}
				least, most = min(least, len(topics["z"])), max(most, len(topics["z"]))
			}
			if len(owner) != partitions || most-least > 1 || len(got) != members {
				t.Errorf("%d members, %d partitions: %v", members, partitions, got)
			}
		}
	}
}
