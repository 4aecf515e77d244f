package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/web/budget"
)

// written is a Writer that keeps what it gets.
type written struct {
	kinds    []arrowio.Kind
	messages [][]byte
	err      error
	block    chan struct{}
}

func (w *written) Put(_ context.Context, kind arrowio.Kind, messages [][]byte) error {
	if w.block != nil {
		<-w.block
	}
	w.kinds, w.messages = append(w.kinds, kind), append(w.messages, messages...)
	return w.err
}

func post(h http.Handler, path, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Prefix+path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newTest(w Writer) *Handler {
	return New(w, Options{MaxBody: 1 << 16, Log: slog.New(slog.DiscardHandler), Slices: []string{"region"},
		Refused: refused})
}

// refused is what the decoder refuses.
func refused(b *arrowio.Batch, see func(row int, reason, detail string)) {
	for i, reason := range b.Reject {
		if reason != "" {
			see(i, reason, "first")
		}
	}
}

const good = `{"id":"a","probs":[0.5,0.5],"region":"north"}`

func TestAnswers(t *testing.T) {
	inArrow, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", Version: "2", IDs: []string{"a"}, K: 2,
		Logits: []float32{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	const js = "application/json"
	for _, c := range []struct {
		path, contentType, body string
		code                    int
		want                    string
	}{
		{"m/predictions?version=2", js, good, 200, `{"rows":1,"rejected":0}`},
		{"m/predictions", "application/x-ndjson; charset=utf-8", good + "\n" + `{"id":"b","probs":[0.5,0.9]}`, 200,
			`{"rows":2,"rejected":1,"first_rejected":[{"row":1,"reason":"nonfinite_scores","detail":"first"}]}`},
		{"m/predictions", "application/vnd.apache.arrow.stream", string(inArrow), 200, `{"rows":1`},
		{"other/predictions", "application/vnd.apache.arrow.stream", string(inArrow), 400, `the path says \"other\"`},
		{"m/labels", js, `[{"id":"a","label":1}]`, 200, `{"rows":1`},
		{"m/labels", js, `[{"id":"a"}]`, 400, "column_missing: rows without labels"},
		{"m/predictions", js, `{"id":"a","probs":[NaN,0.5]}`, 400, "byte 19: JSON has no NaN"},
		{"m/predictions", "text/csv", good, 415, "must be application/json"},
		{"m/predictions?versions=2", js, good, 400, "allowed: version"},
		{"m/predictions?version=1&version=2", js, good, 400, "version: given 2 times; once is allowed"},
		{"m/predictions", js, strings.Repeat(" ", 1<<17), 413, "send fewer rows"},
		{"m/predictions", js, " \n", 400, "body: is empty: send at least one row"},
		{"m/labels", "application/vnd.apache.arrow.stream", "", 400, "body: is empty: send at least one row"},
		{"m/outcomes", js, good, 404, "no such path"},
	} {
		w := post(newTest(&written{}), c.path, c.contentType, c.body)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %.60q: got %d %s, want %d %s", c.path, c.body, w.Code, w.Body, c.code, c.want)
		}
	}
}

// TestFirstRowOfEachReasonIsNamed: behind many rows of one reason, and with its detail once.
func TestFirstRowOfEachReasonIsNamed(t *testing.T) {
	body := strings.Repeat(`{"id":"a","prob":1.5}`+"\n", 12) + strings.Repeat(`{"id":null,"prob":0.5}`+"\n", 2)
	w := post(newTest(&written{}), "m/predictions", "application/x-ndjson", body)
	var a Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	want := RejectedRow{12, arrowio.NullRow, "first"}
	if a.Rejected != 14 || len(a.First) != maxNamed+1 || a.First[maxNamed] != want || a.First[0].Detail != "first" ||
		a.First[1].Detail != "" {
		t.Errorf("got %s", w.Body)
	}
}

// TestTimes: a row without a time has that of the request, whatever other rows have, and a null time is rejected.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UnixNano()
		for body, want := range map[string]struct {
			rejected string
			times    []int64
		}{
			`{"id":"a","prob":1}{"id":"b","prob":1,"ts":7}`: {`{"rows":2,"rejected":0}`, []int64{now, 7e9}},
			`{"id":"a","prob":1,"ts":null}{"id":"b","prob":1}`: {
				`{"rows":2,"rejected":1,"first_rejected":[{"row":0,"reason":"null_row","detail":"first"}]}`,
				[]int64{0, now}},
			`{"id":"a","prob":1}`: {`{"rows":1,"rejected":0}`, []int64{-1}}, // the record's, by Kafka
		} {
			to := &written{}
			w := post(newTest(to), "m/predictions", "application/json", body)
			if strings.TrimSpace(w.Body.String()) != want.rejected {
				t.Errorf("%s: got %s, want %s", body, w.Body, want.rejected)
			}
			bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(to.messages[0], arrowio.Origin{Time: -1},
				arrowio.Predictions)
			if err != nil || !slices.Equal(bs[0].TS, want.times) {
				t.Errorf("%s: got %v, %v, want %v", body, bs[0].TS, err, want.times)
			}
		}
	})
}

func TestNamesOfThePathAreThoseOfTheRows(t *testing.T) {
	to := &written{}
	post(newTest(to), "m/predictions?version=2", "application/json", `{"id":"a","model":"x","probs":[0.5,0.5]}`)
	bs, err := arrowio.NewDecoder(arrowio.Options{}).Decode(to.messages[0], arrowio.Origin{}, arrowio.Predictions)
	if err != nil || bs[0].Models[0] != (arrowio.ModelKey{Model: "m", Version: "2"}) ||
		to.kinds[0] != arrowio.Predictions {
		t.Errorf("got %v, %v", bs, err)
	}
}

// TestWhatIsNotDurableIsNotAcknowledged: the client sends again.
func TestWhatIsNotDurableIsNotAcknowledged(t *testing.T) {
	w := post(newTest(&written{err: errors.New("no broker")}), "m/predictions", "application/json", good)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// slowBody is a body of which the network brings a part in time.
func slowBody() io.Reader {
	return io.MultiReader(strings.NewReader("[{"), iotest.ErrReader(os.ErrDeadlineExceeded))
}

// TestSlowBodyIsNotRefusedForGood: rows that come too slowly are sent again, also by exporters, which do not for 408.
func TestSlowBodyIsNotRefusedForGood(t *testing.T) {
	h := newTest(&written{})
	if w := withoutLength(h, slowBody()); w.Code != http.StatusRequestTimeout {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodPost, Prefix+"otlp/v1/traces", slowBody())
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("OpenTelemetry: got %d %s", w.Code, w.Body)
	}
}

// withoutLength posts a body whose length is not known before its end.
func withoutLength(h http.Handler, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Prefix+"m/predictions", io.MultiReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = -1
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestBytesInFlightAreBounded: requests wait for room, and are asked to come again.
func TestBytesInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(&written{})
		all := strings.NewReader(strings.Repeat(" ", maxInFlight))
		_, free, err := h.budget.Read(t.Context(),
			budget.Body{From: all, Length: maxInFlight, Most: maxInFlight})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if w := post(h, "m/predictions", "application/json", good); w.Code != http.StatusServiceUnavailable ||
			w.Header().Get("Retry-After") == "" || time.Since(begun) != roomWait {
			t.Errorf("got %d %s after %v", w.Code, w.Body, time.Since(begun))
		}
		time.AfterFunc(roomWait/2, free)
		if w := post(h, "m/predictions", "application/json", good); w.Code != http.StatusOK {
			t.Errorf("with room after a while: got %d %s", w.Code, w.Body)
		}
		if w := withoutLength(h, strings.NewReader(good)); w.Code != 200 {
			t.Errorf("a body of unknown length: got %d %s", w.Code, w.Body)
		}
	})
}

// TestLargestBodyMayBeLargerThanAllRoom: kafka.message_max_bytes above 64 MiB refuses no request that is small.
func TestLargestBodyMayBeLargerThanAllRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(&written{}, Options{MaxBody: 2 * maxInFlight, Refused: refused, Log: slog.New(slog.DiscardHandler)})
		if w := withoutLength(h, strings.NewReader(`{"id":"a","probs":[0.5,0.5]}`)); w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

// TestStalledRequestsKeepNobodyOut: bodies that are announced and do not come hold little room.
func TestStalledRequestsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(&written{}, Options{MaxBody: 8 << 20, Refused: refused, Log: slog.New(slog.DiscardHandler)})
		for _, path := range []string{"m/predictions", "otlp/v1/logs"} {
			for range 8 {
				body, end := io.Pipe()
				defer func() { _ = end.Close() }()
				r := httptest.NewRequest(http.MethodPost, Prefix+path, body)
				r.Header.Set("Content-Type", "application/json")
				r.ContentLength = 8 << 20
				go h.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		synctest.Wait()
		if w := post(h, "m/predictions", "application/json", `{"id":"a","probs":[0.5,0.5]}`); w.Code != 200 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}
