package client

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/testsize"
)

// receiver is a plumbline process that keeps the rows that it takes.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int // the first answers
	most     int   // bytes of a body; 0: any
	ids      map[arrowio.Kind][]arrowio.ID
	batches  []*arrowio.Batch
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	r := &receiver{statuses: statuses, ids: map[arrowio.Kind][]arrowio.ID{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := arrowio.Predictions
	if q.URL.Path == "/api/v1/ingest/m/labels" {
		kind = arrowio.Labels
	}
	if len(r.statuses) > 0 {
		w.WriteHeader(r.statuses[0])
		r.statuses = r.statuses[1:]
		_, _ = io.WriteString(w, `{"error":"not now"}`)
		return
	}
	if r.most > 0 && len(body) > r.most {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	bs, err2 := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}}).Decode(body, arrowio.Origin{}, kind)
	if err != nil || err2 != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"%v %v"}`, err, err2)
		return
	}
	for _, b := range bs {
		r.batches = append(r.batches, b)
		r.ids[kind] = append(r.ids[kind], b.IDs...)
	}
	_, _ = io.WriteString(w, `{"rows":1}`)
}

// hashed are ids as a batch has them.
func hashed(ids ...string) []arrowio.ID {
	var out []arrowio.ID
	for _, id := range ids {
		out = append(out, arrowio.HashID(id))
	}
	return out
}

func logTo(t *testing.T, to string, o Options) *Logger {
	t.Helper()
	o.To, o.Log = to, slog.New(slog.DiscardHandler)
	if o.Linger == 0 {
		o.Linger = 10 * time.Millisecond
	}
	l, err := New("m", o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (s *Counts) total() int64 {
	return s.SampledOut + s.Dropped + s.Refused + s.Failed + s.Sent + s.Waiting
}

// TestRowsArriveAsTheyWereAtTheCall, after answers that pass.
func TestRowsArriveAsTheyWereAtTheCall(t *testing.T) {
	r := newReceiver(t, 503, 429)
	l := logTo(t, r.URL, Options{Version: "7"})
	z := []float32{1, 2, 3, 4}
	l.Log(Rows{IDs: []string{"a", "b"}, Logits: z, Classes: 2, Slices: map[string][]string{"region": {"eu"}}})
	clear(z)
	l.Log(Rows{IDs: []string{"c"}, Probs: []float32{0.25, 0.75}, Classes: 2, Features: []float32{1, 2, 3}})
	l.Label([]string{"a", "b"}, []int32{1, 0})
	if s := l.Close(within(t, 10*time.Second)); s.Sent != 5 || s.Logged != 5 {
		t.Fatalf("%+v", s)
	}
	if got := r.ids[arrowio.Predictions]; !slices.Equal(got, hashed("a", "b", "c")) {
		t.Errorf("predictions %q", got)
	}
	if got := r.ids[arrowio.Labels]; !slices.Equal(got, hashed("a", "b")) {
		t.Errorf("labels %q", got)
	}
	if b := r.batches[0]; b.Models[0] != (arrowio.ModelKey{Model: "m", Version: "7"}) ||
		!slices.Equal(b.Scores[:4], []float32{1, 2, 3, 4}) {
		t.Errorf("%+v", b.Scores)
	}
}

// TestSlowNetworkLosesNothing: what does not come in time is sent again, fewer rows at a time.
func TestSlowNetworkLosesNothing(t *testing.T) {
	r := newReceiver(t, 408, 408)
	l := logTo(t, r.URL, Options{})
	l.Label([]string{"a", "b"}, []int32{0, 1})
	if s := l.Close(within(t, 10*time.Second)); s.Sent != 2 {
		t.Fatalf("%+v", s)
	}
	if got := r.ids[arrowio.Labels]; !slices.Equal(got, hashed("a", "b")) || len(r.batches) != 2 {
		t.Errorf("labels %q in %d requests", got, len(r.batches))
	}
}

// TestWhatIsRefusedForGoodIsCounted: it is not sent again, and what comes after it arrives.
func TestWhatIsRefusedForGoodIsCounted(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 422} {
		r := newReceiver(t, code)
		var mu sync.Mutex
		lost := 0
		l := logTo(t, r.URL, Options{OnDrop: func(rows int, _ string) { mu.Lock(); lost += rows; mu.Unlock() }})
		l.Label([]string{"a", "b"}, []int32{0, 1})
		eventually.True(t, "refused", func() bool { return l.Stats().Failed == 2 })
		l.Label([]string{"c"}, []int32{0})
		s := l.Close(within(t, 10*time.Second))
		if s.Failed != 2 || s.Sent != 1 || lost != 2 || s.Errors[fmt.Sprintf("%d: not now", code)] != 2 {
			t.Errorf("%d: %+v, %d lost", code, s, lost)
		}
	}
}

// TestTooLargeIsHalved until it fits; a row that never does is counted alone.
func TestTooLargeIsHalved(t *testing.T) {
	r := newReceiver(t)
	r.most = 3000
	l := logTo(t, r.URL, Options{})
	var ids []string
	for i := range 300 {
		ids = append(ids, fmt.Sprint("row-", i))
	}
	l.Label(ids, make([]int32, 300))
	l.Log(Rows{IDs: []string{"big"}, Probs: slices.Repeat([]float32{0.001}, 1000), Classes: 1000})
	s := l.Close(within(t, 20*time.Second))
	if got := r.ids[arrowio.Labels]; s.Sent != 300 || s.Failed != 1 || !slices.Equal(got, hashed(ids...)) {
		t.Errorf("%+v, %d rows", s, len(got))
	}
}

// TestBoundedAndFastWithoutAnybody: no call waits for a server that is not there, or never answers; memory is bounded,
// every row is counted.
func TestBoundedAndFastWithoutAnybody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, to := range []string{"http://127.0.0.1:9", "kafka://127.0.0.1:9", "http://" + silent.Addr().String(),
		"kafka://" + silent.Addr().String()} {
		l := logTo(t, to, Options{MaxBytes: 1 << 20})
		z, took := make([]float32, 100), []time.Duration{}
		ids := slices.Repeat([]string{"some-id"}, 10)
		for range 3000 {
			began := time.Now()
			l.Log(Rows{IDs: ids, Logits: z, Classes: 10})
			took = append(took, time.Since(began))
		}
		s := l.Stats()
		slices.Sort(took)
		if s.WaitingBytes > 1<<20 || s.Dropped < 1000 || s.total() != 30000 || took[1500] > 50*time.Microsecond {
			t.Errorf("%s: %+v, p50 %v", to, s, took[1500])
		}
		began := time.Now()
		s = l.Close(within(t, 300*time.Millisecond))
		if time.Since(began) > 5*time.Second || s.Sent != 0 || s.total() != 30000 || s.Waiting != 0 {
			t.Errorf("%s: %+v after %v", to, s, time.Since(began))
		}
	}
}

// TestBlockWaitsAsLongAsSet, and no longer.
func TestBlockWaitsAsLongAsSet(t *testing.T) {
	l := logTo(t, "http://127.0.0.1:9", Options{MaxBytes: 1000, Block: 200 * time.Millisecond})
	defer l.Close(within(t, time.Millisecond))
	rows := Rows{IDs: []string{"a"}, Logits: make([]float32, 150), Classes: 150}
	l.Log(rows)
	began := time.Now()
	l.Log(rows)
	if took := time.Since(began); took < 150*time.Millisecond || took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestSample keeps predictions and labels of the same ids, which clients in Python keep too.
func TestSample(t *testing.T) {
	r := newReceiver(t)
	l := logTo(t, r.URL, Options{Sample: 0.25})
	var ids, want []string
	for i := range 4000 {
		ids = append(ids, fmt.Sprint("row-", i))
		if crc32.ChecksumIEEE([]byte(ids[i])) < 1<<30 {
			want = append(want, ids[i])
		}
	}
	l.Log(Rows{IDs: ids, Probs: slices.Repeat([]float32{0.5}, 8000), Classes: 2})
	l.Label(ids, make([]int32, 4000))
	s := l.Close(within(t, 10*time.Second))
	if got := r.ids[arrowio.Predictions]; !slices.Equal(got, hashed(want...)) ||
		!slices.Equal(r.ids[arrowio.Labels], hashed(want...)) ||
		r.batches[0].Weight[0] != 4 || s.SampledOut != int64(8000-2*len(want)) {
		t.Errorf("%d of %d rows, weight %v, %+v", len(got), len(want), r.batches[0].Weight[:1], s)
	}
}

// TestWhatSamplingLeavesOutTakesNoRoom: after calls without a row that is kept there is as much as before.
func TestWhatSamplingLeavesOutTakesNoRoom(t *testing.T) {
	l := logTo(t, newReceiver(t).URL, Options{Sample: 0.01, MaxBytes: 1000})
	out, in := "", ""
	for i := 0; out == "" || in == ""; i++ {
		if id := fmt.Sprint("row-", i); crc32.ChecksumIEEE([]byte(id)) < uint32(l.below) { //nolint:gosec // below 1<<32
			in = id
		} else {
			out = id
		}
	}
	for range 10 {
		l.Log(Rows{IDs: []string{out}, Probs: []float32{.5, .5}, Classes: 2})
		l.Label([]string{out}, []int32{0})
	}
	if s := l.Stats(); s.SampledOut != 20 || s.Logged != 20 || s.WaitingBytes != 0 {
		t.Errorf("%+v", s)
	}
	l.Log(Rows{IDs: []string{in}, Probs: []float32{.5, .5}, Classes: 2})
	if s := l.Close(within(t, 10*time.Second)); s.Sent != 1 || s.Dropped != 0 || s.total() != s.Logged {
		t.Errorf("%+v", s)
	}
}

// TestCallsAfterCloseAreSaidToBe: that the logger is closed is another mistake than too little room.
func TestCallsAfterCloseAreSaidToBe(t *testing.T) {
	var said []string
	l := logTo(t, newReceiver(t).URL, Options{OnDrop: func(_ int, why string) { said = append(said, why) }})
	l.Close(within(t, 10*time.Second))
	l.Label([]string{"a", "b"}, []int32{0, 1})
	if s := l.Stats(); s.Dropped != 2 || s.Logged != 2 || s.WaitingBytes != 0 || !slices.Equal(said, []string{
		"the logger is closed"}) {
		t.Errorf("%+v, said %q", s, said)
	}
}

// TestColumnsThatDoNotFit are refused, and others are not.
func TestColumnsThatDoNotFit(t *testing.T) {
	r := newReceiver(t)
	l := logTo(t, r.URL, Options{})
	for _, bad := range []Rows{{}, {IDs: []string{"a"}}, {IDs: []string{"a"}, Probs: []float32{1}, Classes: 1},
		{IDs: []string{"a"}, Probs: []float32{.5, .5}, Classes: 2, Weight: []float32{1, 2}},
		{IDs: []string{"a"}, Probs: []float32{.5, .5}, Classes: 2, Slices: map[string][]string{"s": {"a", "b"}}}} {
		l.Log(bad)
	}
	l.Label([]string{"a"}, nil)
	l.Label([]string{"a"}, []int32{1})
	s := l.Close(within(t, 10*time.Second))
	if s.Refused != 5 || s.Sent != 1 || s.Logged != 6 {
		t.Errorf("%+v", s)
	}
	if s.Errors["1 classes: at least 2; send the scores of both for a binary classifier"] != 1 {
		t.Errorf("one score a row is not said to be too few: %v", s.Errors)
	}
	for _, o := range []Options{{Linger: -1}, {Patience: -1}, {MaxBytes: -1}, {Sample: -.1}, {Sample: 1.1}} {
		o.To = "http://127.0.0.1:1"
		if _, err := New("m", o); err == nil {
			t.Errorf("%+v makes a logger", o)
		}
	}
	if _, err := New("m", Options{To: "localhost:9092"}); err == nil {
		t.Error("an address without a scheme was taken")
	}
}

// TestNamesOfSlicesWithCommas: calls with other slices are other messages, whatever their names.
func TestNamesOfSlicesWithCommas(t *testing.T) {
	r := newReceiver(t)
	l := logTo(t, r.URL, Options{Linger: 100 * time.Millisecond})
	for _, s := range []map[string][]string{{"a,b": {"x"}}, {"a": {"x"}, "b": {"x"}}, {"b": {"x"}, "a": {"x"}}} {
		l.Log(Rows{IDs: []string{"a"}, Probs: []float32{.5, .5}, Classes: 2, Slices: s})
	}
	if s := l.Close(within(t, 10*time.Second)); s.Sent != 3 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAnAnswerIsBounded: a process that answers without end costs no more memory than the largest calibrator.
func TestAnAnswerIsBounded(t *testing.T) {
	sent := atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	c := Follow(s.URL, "m", FollowOptions{Wait: time.Second, Log: slog.New(slog.DiscardHandler)})
	if got := c.Problem(); !strings.Contains(got, "more than 67108864 bytes") || c.Revision() != 0 {
		t.Errorf("problem %q, revision %d", got, c.Revision())
	}
	c.Close()
	s.CloseClientConnections()
	s.Close()
}

// TestFollow: a newer calibrator replaces the one before as a whole; what is not sure is the plain softmax.
func TestFollow(t *testing.T) {
	testsize.Slow(t)
	records := make(chan string, 1)
	now := `{"model":"m","revision":0,"calibrator":{"version":1,"method":"identity"}}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("wait") != "" {
			select {
			case now = <-records:
			case <-q.Context().Done():
			case <-time.After(2 * time.Second):
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		_, _ = io.WriteString(w, now)
	}))
	defer s.Close()
	c := Follow(s.URL, "m", FollowOptions{Wait: 2 * time.Second, Log: slog.New(slog.DiscardHandler)})
	defer c.Close()
	z, p := []float64{0, math.Log(3)}, make([]float64, 2)
	expect := func(want float64, problem bool) {
		t.Helper()
		err := c.Apply(p, z)
		if err != nil || math.Abs(p[1]-want) > 1e-12 || (c.Problem() != "") != problem {
			t.Errorf("probability %v, want %v; problem %q, revision %d", p[1], want, c.Problem(), c.Revision())
		}
	}
	publish := func(record string, revision int) {
		t.Helper()
		records <- record
		eventually.True(t, fmt.Sprintf("revision %d", revision), func() bool {
			return c.Revision() == revision && (revision > 0 || c.Problem() != "")
		})
	}
	expect(0.75, false)
	publish(`{"model":"m","revision":1,"calibrator":{"version":1,"method":"temperature","temperature":2}}`, 1)
	expect(math.Sqrt(3)/(1+math.Sqrt(3)), false)
	if s := c.InForce(); s.Revision != 1 || s.Correction != nil || !s.CorrectedFrom.IsZero() {
		t.Errorf("what gives the probabilities is named %+v", s)
	}
	publish(`{"model":"m","revision":2,"calibrator":{"version":1,"method":"identity"},`+
		`"top":{"slope":1,"intercept":-0.5,"effective_from":"2026-01-01T00:01:00Z"}}`, 2)
	expect(1/(1+math.Exp(.5-math.Log(3))), false)
	if s := c.InForce(); s.Revision != 2 || s.Correction == nil || s.Correction.Intercept != -.5 ||
		!s.CorrectedFrom.Equal(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)) {
		t.Errorf("what gives the probabilities is named %+v", s)
	}
	publish(`{"model":"m","revision":3,"calibrator":{"version":1,"method":"of next year"}}`, 0)
	expect(0.75, true)
}

// TestWhatIsNoAnswerChangesNothing: another server, another model, a proxy's page; and the problem ends with them.
func TestWhatIsNoAnswerChangesNothing(t *testing.T) {
	const good = `{"model":"m","version":"7","revision":1,"calibrator":{"version":1,"method":"identity"}}`
	status, body := http.StatusOK, good
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	c := &Calibrator{log: slog.New(slog.DiscardHandler)}
	f := &fetcher{c: c, client: s.Client(), model: "m", version: "7"}
	if !f.fetch(t.Context(), s.URL, time.Minute) || c.Revision() != 1 || c.Problem() != "" {
		t.Fatalf("revision %d, problem %q", c.Revision(), c.Problem())
	}
	for _, body = range []string{`{}`, `null`, `{"status":"ok"}`, `<html>`, `[1]`,
		strings.Replace(good, `"m"`, `"n"`, 1), strings.Replace(good, `"7"`, `"8"`, 1),
		strings.Replace(good, `"revision":1,`, ``, 1),
		`{"model":"m","version":"7","revision":2}`, `{"model":"m","version":"7","revision":2,"calibrator":null}`} {
		if f.fetch(t.Context(), s.URL, time.Minute) || c.Revision() != 1 || c.Problem() == "" {
			t.Errorf("%s: revision %d, problem %q; want the one before, and a problem", body, c.Revision(), c.Problem())
		}
	}
	status, body = http.StatusNotModified, ""
	if !f.fetch(t.Context(), s.URL, time.Minute) || c.Problem() != "" {
		t.Errorf("after an answer the problem is still %q", c.Problem())
	}
	c.tell(ofLogits, "it is for 2 classes, the logits have 3")
	if err := c.Apply(make([]float64, 3), make([]float64, 3)); err != nil || c.Problem() != "" {
		t.Errorf("%v; after logits that fit the problem is still %q", err, c.Problem())
	}
}

// TestLogitsThatAreNoNumbers: the row has no probabilities, as where a process applies the calibrator, and the error,
// Problem and the log say why; the next row is as before.
func TestLogitsThatAreNoNumbers(t *testing.T) {
	var said strings.Builder
	c := &Calibrator{log: slog.New(slog.NewTextHandler(&said, nil))}
	const halves = `{"version":1,"method":"temperature","temperature":2}`
	for _, x := range []struct {
		calibrator string
		logits     []float64
		why        string
	}{
		{`{"version":1,"method":"identity"}`, []float64{1, math.NaN()},
			"the logit of class 1 is NaN, must be a finite number"},
		{halves, []float64{math.Inf(1), 0}, "class 0 is +Inf"},
		{halves, []float64{0, math.Inf(-1)}, "class 1 is -Inf"},
	} {
		(&fetcher{c: c}).take(1, []byte(x.calibrator), nil)
		p := []float64{0, 0}
		err := c.Apply(p, x.logits)
		if err == nil || !strings.Contains(err.Error(), x.why) || c.Problem() != err.Error() ||
			!math.IsNaN(p[0]) || !math.IsNaN(p[1]) {
			t.Errorf("%v of %s: %v, problem %q, error %v", x.logits, x.calibrator, p, c.Problem(), err)
		}
		if err := c.Apply(p, []float64{0, 0}); err != nil || p[0] != .5 || c.Problem() != "" {
			t.Errorf("the next row: %v, problem %q, error %v", p, c.Problem(), err)
		}
	}
	if n := strings.Count(said.String(), "level=WARN"); n != 1 {
		t.Errorf("%d lines of log, want 1 a minute:\n%s", n, said.String())
	}
}

// TestRoomForProbabilities: a server goes on where it gives room for another number of classes, and hears of it.
func TestRoomForProbabilities(t *testing.T) {
	c := &Calibrator{log: slog.New(slog.DiscardHandler)}
	for _, calibrator := range []string{`{"version":1,"method":"identity"}`,
		`{"version":1,"method":"temperature","temperature":2}`} {
		(&fetcher{c: c}).take(1, []byte(calibrator), nil)
		for _, n := range []struct{ room, logits int }{{2, 3}, {0, 3}, {4, 3}, {3, 0}, {0, 0}} {
			p := make([]float64, n.room)
			if err := c.Apply(p, make([]float64, n.logits)); err == nil || slices.Max(append(p, 0)) != 0 {
				t.Errorf("room for %d, %d logits: error %v, written %v", n.room, n.logits, err, p)
			}
		}
	}
}

// TestAnotherAnswerIsNoSuccess: nobody knows what a login page did with rows.
func TestAnotherAnswerIsNoSuccess(t *testing.T) {
	for _, body := range []string{`<html>`, `{}`, `[1]`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, body)
		}))
		to := &toHTTP{url: s.URL + "/", model: "m", client: s.Client()}
		c := &call{labels: true, n: 1, Rows: Rows{IDs: []string{"a"}, Labels: []int32{1}}}
		if _, _, err := to.post(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not an answer") {
			t.Errorf("%s: %v, want an error", body, err)
		}
		s.Close()
	}
}
