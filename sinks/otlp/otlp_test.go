package otlp

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/plumbline/plumbline/pipeline/tracing"
)

var quiet = slog.New(slog.DiscardHandler)

// exporter is one whose spans go to a handler until the test ends.
func exporter(t *testing.T, h http.HandlerFunc) (e *Exporter, stop func()) {
	t.Helper()
	srv := httptest.NewServer(h)
	e, err := New(Config{Endpoint: srv.URL + "/"}, Process{Instance: "host", Version: "v9"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	e.pause = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx)
	}()
	t.Cleanup(srv.Close)
	return e, func() { cancel(); <-done }
}

var sample = tracing.Span{
	Context: tracing.Context{Trace: tracing.TraceID{1, 2}, Span: tracing.SpanID{3}, State: "a=1,b=2"},
	Parent:  tracing.SpanID{4},
	Name:    "process logits",
	Kind:    tracing.Consumer,
	Start:   time.Unix(1_700_000_000, 5),
	End:     time.Unix(1_700_000_001, 6),
	Attrs: []tracing.Attr{
		{Key: "messaging.system", Value: "kafka"},
		{Key: "n", Value: int64(-7)},
		{Key: "bad", Value: "a\xff"},
	},
	Err: "it broke",
}

func attrsOf(kvs []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		if n, ok := kv.Value.Value.(*common.AnyValue_IntValue); ok && n.IntValue == -7 {
			out[kv.Key] = "-7"
			continue
		}
		out[kv.Key] = kv.Value.GetStringValue()
	}
	return out
}

// TestSpansReachACollector decodes what is sent with the types that OpenTelemetry publishes.
func TestSpansReachACollector(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "calibration")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test, team=a%2Cb")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
	got := make(chan *collector.ExportTraceServiceRequest, 1)
	e, stop := exporter(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, req)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %v: %v", r.URL, r.Header, err)
		}
		got <- req
	})
	e.Export(sample)
	req := <-got
	stop()
	in := req.ResourceSpans[0]
	want := map[string]string{"service.name": "calibration", "service.version": "v9", "service.instance.id": "host",
		"deployment.environment": "test", "team": "a,b"}
	if have := attrsOf(in.Resource.Attributes); !maps.Equal(have, want) {
		t.Errorf("resource %v, want %v", have, want)
	}
	s := in.ScopeSpans[0].Spans[0]
	if hex.EncodeToString(s.TraceId) != sample.Trace.String() || !slices.Equal(s.SpanId, sample.Context.Span[:]) ||
		!slices.Equal(s.ParentSpanId, sample.Parent[:]) || s.Name != sample.Name || int(s.Kind) != int(sample.Kind) ||
		s.StartTimeUnixNano != 1_700_000_000_000_000_005 || s.EndTimeUnixNano != 1_700_000_001_000_000_006 ||
		s.TraceState != "a=1,b=2" || s.Status.Message != "it broke" || s.Status.Code != 2 {
		t.Errorf("span %v, want %+v", s, sample)
	}
	attrs := map[string]string{"messaging.system": "kafka", "n": "-7", "bad": "a�"}
	if have := attrsOf(s.Attributes); !maps.Equal(have, attrs) {
		t.Errorf("attributes %v, want %v", have, attrs)
	}
	if e.counts[sent].Load() != 1 {
		t.Errorf("%d sent, want 1", e.counts[sent].Load())
	}
}

// TestNobodyWaitsForTheCollector: one that never answers costs spans and no time.
func TestNobodyWaitsForTheCollector(t *testing.T) {
	release := make(chan struct{})
	e, stop := exporter(t, func(http.ResponseWriter, *http.Request) { <-release })
	began := time.Now()
	const n = 3 * maxQueue
	for range n {
		e.Export(sample)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("%d spans took %s", n, took)
	}
	if e.counts[noRoom].Load() < n-maxQueue-2*maxBatch {
		t.Errorf("%d of %d found no room in a queue of %d", e.counts[noRoom].Load(), n, maxQueue)
	}
	began = time.Now()
	stop()
	close(release)
	if took := time.Since(began); took > lastTime+time.Second {
		t.Errorf("the end took %s, want at most %s", took, lastTime)
	}
	total := int64(0)
	for _, c := range e.counts {
		total += c.Load()
	}
	if total != n {
		t.Errorf("%d of %d spans are counted", total, n)
	}
}

// TestRefusals: what a collector refuses is not sent again; what it does not take now is.
func TestRefusals(t *testing.T) {
	partial, err := proto.Marshal(&collector.ExportTraceServiceResponse{
		PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		codes  []int
		answer string
		want   map[string]int64
	}{
		{"refused", []int{400}, "", map[string]int64{refused: 1}},
		{"later", []int{503, 200}, "", map[string]int64{sent: 1}},
		{"partly", []int{200}, string(partial), map[string]int64{refused: 1}},
		{"a page to log in", []int{302}, "", map[string]int64{refused: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			codes := slices.Clone(c.codes)
			done := make(chan struct{})
			e, stop := exporter(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/login")
				w.WriteHeader(codes[0])
				_, _ = w.Write([]byte(c.answer))
				if codes = codes[1:]; len(codes) == 0 {
					close(done)
				}
			})
			e.Export(sample)
			<-done
			stop()
			for outcome, n := range e.counts {
				if n.Load() != c.want[outcome] {
					t.Errorf("%s: %d, want %d", outcome, n.Load(), c.want[outcome])
				}
			}
		})
	}
}

func TestVariablesOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "s3cret-without-a-name")
	_, err := New(Config{Endpoint: "http://x"}, Process{}, quiet)
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "OTLP_HEADERS") {
		t.Errorf("a header without a name: %v, want an error that names the variable and not its value", err)
	}
}
