package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/metadata"
	"github.com/segmentio/kafka-go/protocol/produce"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/client"
)

// server takes what clients send, as broker and as process, and reads it as plumbline does by default.
type server struct {
	mu        sync.Mutex
	partition int
	slice     string // a column of slices.columns beside region
	messages  int
	rows      int
	faults    []string // messages and rows that plumbline would refuse
}

const kafkaMost = 8 << 20 // kafka.message_max_bytes

func (s *server) read(value []byte, labels bool) (rows int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages++
	o := arrowio.Options{Slices: []string{"region", s.slice}, MaxMessageBytes: kafkaMost}
	kind := arrowio.Predictions
	if labels {
		kind = arrowio.Labels
	}
	parts, err := arrowio.NewSplitter(o).Split(value, arrowio.Origin{}, kind, 1, func([]byte) int { return 0 })
	for _, part := range parts {
		batches, e := arrowio.NewDecoder(o).Decode(part.Value, arrowio.Origin{}, kind)
		err = errors.Join(err, e)
		for _, b := range batches {
			rows += b.N
			for _, why := range b.Reject {
				if why != "" {
					s.faults = append(s.faults, why)
				}
			}
		}
	}
	if err != nil {
		s.faults = append(s.faults, err.Error())
	}
	s.rows += rows
	return rows, err
}

// server as that of HTTP.
type process struct{ *server }

func (s process) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	answer := func(code int, text string) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(text)), Request: q}, nil
	}
	if len(body) > kafkaMost {
		return answer(http.StatusRequestEntityTooLarge, `{"error":"too large"}`)
	}
	rows, err := s.read(body, strings.HasSuffix(q.URL.Path, "/labels"))
	if err != nil {
		return answer(http.StatusBadRequest, `{"error":"refused"}`)
	}
	return answer(http.StatusOK, fmt.Sprintf(`{"rows":%d}`, rows))
}

// server as a broker, which looks into no message.
type broker struct{ *server }

func (s broker) RoundTrip(_ context.Context, _ net.Addr, q kafka.Request) (kafka.Response, error) {
	switch q := q.(type) {
	case *metadata.Request:
		return &metadata.Response{Topics: []metadata.ResponseTopic{{Name: q.TopicNames[0],
			Partitions: make([]metadata.ResponsePartition, max(1, s.partition))}}}, nil
	case *produce.Request:
		r, err := q.Topics[0].Partitions[0].RecordSet.Records.ReadRecord()
		if err != nil {
			return nil, err
		}
		value := make([]byte, r.Value.Len())
		if _, err := io.ReadFull(r.Value, value); err != nil {
			return nil, err
		}
		_, _ = s.read(value, strings.HasSuffix(q.Topics[0].Topic, "labels"))
		return &produce.Response{Topics: []produce.ResponseTopic{{
			Partitions: make([]produce.ResponsePartition, 1)}}}, nil
	}
	return nil, fmt.Errorf("not a request of producers: %T", q)
}

// started is a logger to a server, which sends when it is closed.
func started(t *testing.T, to, model string, s *server, o client.Options) *client.Logger {
	t.Helper()
	o.To, o.Linger, o.Log = to, time.Hour, slog.New(slog.DiscardHandler)
	o.Transport, o.HTTP = broker{s}, &http.Client{Transport: process{s}}
	l, err := client.New(model, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t *testing.T, l *client.Logger) client.Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return l.Close(ctx)
}

func row(id string) client.Rows {
	return client.Rows{IDs: []string{id}, Probs: []float32{.5, .5}, Classes: 2}
}

func region(id, value string) client.Rows {
	r := row(id)
	r.Slices = map[string][]string{"region": {value}}
	return r
}

func at(id string, when time.Time) client.Rows {
	r := region(id, "eu")
	r.Times = []time.Time{when}
	return r
}

var overBoth = []string{"kafka://broker:9092", "http://process"}

// TestABadRowLosesNoOther: what is wrong with a row costs neither those of other calls, which are in one message with
// it, nor those of its own.
func TestABadRowLosesNoOther(t *testing.T) {
	for _, c := range []struct {
		bad client.Rows
		why string
	}{
		{region("bad", strings.Repeat("r", 300)), "slice region: more than 256 bytes"},
		{region("bad", "\xff"), "slice region: not UTF-8"},
		{region(strings.Repeat("i", 12<<20), "eu"), "id: more than 65536 bytes"},
		{region("", "eu"), "id: empty"},
		{at("bad", time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)), "time: not from 1681-08-18 to 2258-05-15"},
		{at("bad", time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)), "time: not from 1681-08-18 to 2258-05-15"},
	} {
		for _, to := range overBoth {
			s, said := &server{}, ""
			l := started(t, to, "m", s, client.Options{OnDrop: func(rows int, why string) {
				said += fmt.Sprint(rows, " ", why)
			}})
			for i := range 1000 {
				if i == 500 {
					l.Log(c.bad)
				}
				l.Log(region(fmt.Sprint("row-", i), "eu"))
			}
			both := c.bad
			both.IDs, both.Probs = append([]string{"good"}, c.bad.IDs...), []float32{.5, .5, .5, .5}
			both.Slices = map[string][]string{"region": append([]string{"eu"}, c.bad.Slices["region"]...)}
			if len(both.Times) > 0 {
				both.Times = append([]time.Time{time.Now()}, c.bad.Times...)
			}
			l.Log(both)
			got := closed(t, l)
			if got.Sent != 1001 || got.Refused != 2 || got.Logged != 1003 || got.Errors[c.why] != 2 || s.rows != 1001 ||
				len(s.faults) > 0 {
				t.Errorf("%s: %+v; %d rows arrived, refused there: %.3q; want %q twice", to, got, s.rows, s.faults,
					c.why)
			}
			id := fmt.Sprintf("id %.40q)", c.bad.IDs[0])
			if want := "1 " + c.why + " (row 0 of the call, " + id + "1 " + c.why + " (row 1 of the call, " +
				id; said != want {
				t.Errorf("%s: said %q, want %q", to, said, want)
			}
		}
	}
}

// TestLabelsOfNoClassAreRefused: others of the call are sent.
func TestLabelsOfNoClassAreRefused(t *testing.T) {
	for _, to := range overBoth {
		s := &server{}
		l := started(t, to, "m", s, client.Options{})
		l.Label([]string{"a", "b", "", "c"}, []int32{0, -1, 1, 1 << 17})
		if got := closed(t, l); got.Sent != 1 || got.Refused != 3 || s.rows != 1 || len(s.faults) > 0 {
			t.Errorf("%s: %+v; %d rows, %q", to, got, s.rows, s.faults)
		}
	}
}

// TestCallsOfWhichNoRowIsTaken are refused as a whole, and counted by the rows that were meant.
func TestCallsOfWhichNoRowIsTaken(t *testing.T) {
	slice := func(name string) client.Rows {
		r := row("a")
		r.Slices = map[string][]string{name: {"x"}}
		return r
	}
	many, wide, deep := row("a"), row("a"), row("a")
	many.Slices = map[string][]string{}
	for i := range 257 {
		many.Slices[fmt.Sprint("s", i)] = []string{"x"}
	}
	wide.Probs, wide.Classes = make([]float32, 1<<17+1), 1<<17+1
	deep.Features = make([]float32, 1<<16+1)
	for why, r := range map[string]client.Rows{
		`slice "model": a slice cannot have this name`:                 slice("model"),
		`slice "ts": a slice cannot have this name`:                    slice("ts"),
		`slice "": a name must not be empty`:                           slice(""),
		`slice "\xff": not UTF-8`:                                      slice("\xff"),
		`slice "` + strings.Repeat("n", 40) + `": more than 256 bytes`: slice(strings.Repeat("n", 257)),
		"257 slices, at most 256":                                      many,
		"131073 classes, at most 131072":                               wide,
		"65537 features a row, at most 65536":                          deep,
		"rows without ids":                                             {Probs: []float32{.5, .5}, Classes: 2},
		"slice region: 2 values for 1 ids": {IDs: []string{"a"}, Classes: 2, Probs: []float32{.5, .5},
			Slices: map[string][]string{"region": {"a", "b"}}},
	} {
		s := &server{}
		l := started(t, overBoth[0], "m", s, client.Options{})
		l.Log(r)
		if got := closed(t, l); got.Refused != 1 || got.Logged != 1 || got.Errors[why] != 1 || s.messages > 0 {
			t.Errorf("%+v; want %q", got, why)
		}
	}
}

// TestTheLargestIsTaken: the limits are those of the decoder, or below them.
func TestTheLargestIsTaken(t *testing.T) {
	most := strings.Repeat("m", 256)
	for _, to := range overBoth {
		s := &server{slice: strings.Repeat("s", 256)}
		l := started(t, to, most, s, client.Options{Version: most})
		r := client.Rows{IDs: []string{strings.Repeat("i", 64<<10)}, Logits: make([]float32, 1<<17), Classes: 1 << 17,
			Features: make([]float32, 1<<16), Slices: map[string][]string{s.slice: {most}}}
		for i := range 255 {
			r.Slices[fmt.Sprintf("%0256d", i)] = []string{most}
		}
		l.Log(r)
		l.Log(at("\xff", time.Unix(0, 9_100_000_000_000_000_000))) // ids may be any bytes
		l.Log(at("zero", time.Time{}))                             // it is now
		if got := closed(t, l); got.Sent != 3 || s.rows != 3 || len(s.faults) > 0 {
			t.Errorf("%s: %+v; %d rows, %.200q", to, got, s.rows, s.faults)
		}
	}
}

// TestMessagesFitWithoutCompression: a broker takes many megabytes that lz4 makes small, plumbline does not.
func TestMessagesFitWithoutCompression(t *testing.T) {
	for _, to := range overBoth {
		s := &server{partition: 2}
		l := started(t, to, "m", s, client.Options{})
		r := client.Rows{Logits: make([]float32, 5000*1000), Classes: 1000}
		for i := range 5000 {
			r.IDs = append(r.IDs, fmt.Sprint("row-", i))
		}
		l.Log(r)
		if got := closed(t, l); got.Sent != 5000 || s.rows != 5000 || len(s.faults) > 0 {
			t.Errorf("%s: %+v; %d rows, %.200q", to, got, s.rows, s.faults)
		}
	}
}

// TestOptionsThatCannotBeUsed make no logger, and no password is told.
func TestOptionsThatCannotBeUsed(t *testing.T) {
	const to = "kafka://b:9092"
	for _, c := range []struct{ model, version, to, why string }{
		{"", "", to, "model: must not be empty"},
		{strings.Repeat("m", 257), "", to, "more than 256 bytes"},
		{"\xff", "", to, "not UTF-8"},
		{"m", strings.Repeat("v", 257), to, "version"},
		{"m", "\xff", to, "version"},
		{"m", "", to + "?logit=typo", `unknown parameter "logit"`},
		{"m", "", to + "?logits=a&logits=b", "must be one topic"},
		{"m", "", to + "?labels=", "must be one topic"},
		{"m", "", to + "?logits=%zz", "%zz"},
		{"m", "", to + "/topic", `without the path "/topic"`},
		{"m", "", to + "#x", "without #"},
		{"m", "", "kafka://", "a host is missing"},
		{"m", "", "kafka://:9092", "a host is missing"},
		{"m", "", "kafka://a:9092,,b:9092", "a host is missing"},
		{"m", "", "kafka://me:secret@b:9092", "Options.Transport"},
		{"m", "", "http://", "a host is missing"},
		{"m", "", "https:///path", "a host is missing"},
		{"m", "", "http://process?x=1", `unknown parameter "x"`},
		{"m", "", "http://me:secret@process:port", "invalid port"},
		{"m", "", "ftp://me:secret@process", "must begin with"},
		{"m", "", "process:8080", "must begin with"},
		{"m", "", "", "must begin with"},
	} {
		l, err := client.New(c.model, client.Options{Version: c.version, To: c.to})
		if l != nil || err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20q, %.20q, %q: %v, want %q", c.model, c.version, c.to, err, c.why)
		}
	}
	for _, to := range []string{"kafka://a:9092,b:9092?logits=x&labels=y", "kafka://[::1]:9092/", "kafka://a",
		"https://me:secret@process/below/"} {
		l, err := client.New("m", client.Options{To: to})
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		closed(t, l)
	}
}

// columns are those that a configuration may not name as slices.
var columns = []string{"id", "ts", "logits", "logit", "probs", "prob", "label", "label_ts", "features", "model",
	"version", "served", "weight"}

// FuzzWhatIsTakenIsDecoded: of what the client does not refuse, plumbline refuses nothing.
func FuzzWhatIsTakenIsDecoded(f *testing.F) {
	f.Add("id", "region", "eu", "m", "1", int32(0), int64(0))
	f.Add("\xff", "logits", "\xff", "\xff", "", int32(-1), int64(1)<<62)
	f.Add("", "", "", "", "\xff", int32(1)<<20, int64(-1)<<40)
	f.Add("a", "a,b", strings.Repeat("é", 129), "..", "/", int32(1), int64(9_200_000_000))
	f.Fuzz(func(t *testing.T, id, name, value, model, version string, label int32, seconds int64) {
		for _, to := range overBoth {
			s := &server{}
			if !slices.Contains(columns, name) {
				s.slice = name
			}
			o := client.Options{To: to, Version: version, Linger: time.Hour, Log: slog.New(slog.DiscardHandler),
				Transport: broker{s}, HTTP: &http.Client{Transport: process{s}}}
			l, err := client.New(model, o)
			if err != nil {
				if l, err = client.New("m", client.Options{To: to, Linger: o.Linger, Log: o.Log, Transport: o.Transport,
					HTTP: o.HTTP}); err != nil {
					t.Fatal(err)
				}
			}
			l.Log(region("good", "eu"))
			l.Log(at(id, time.Unix(seconds, 0)))
			l.Log(region(id, value))
			r := row(id)
			r.Slices = map[string][]string{name: {value}}
			l.Log(r)
			l.Label([]string{id, "good"}, []int32{label, 1})
			got := closed(t, l)
			if got.Logged != 6 || got.Sent+got.Refused != 6 || got.Sent < 2 || int64(s.rows) != got.Sent {
				t.Errorf("%s: %+v, %d rows arrived", to, got, s.rows)
			}
			if len(s.faults) > 0 {
				t.Errorf("%s: plumbline refuses %q", to, s.faults)
			}
		}
	})
}
