//go:build integration

package integration

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

const (
	producerTrace = "0af7651916cd43dd8448eb211c80319c"
	producerSpan  = "b7ad6b7169203331"
	producerState = "vendor=1,other@v=x:y"
)

// spanReceiver is the receiving end of OTLP over HTTP, with the types that OpenTelemetry publishes.
type spanReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]*trace.Span // of the producer's trace, by id
}

func startReceiver(t *testing.T) *spanReceiver {
	t.Helper()
	r := &spanReceiver{spans: map[string]*trace.Span{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		export := &collector.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, export)
		}
		if err != nil || req.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", req.URL, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, in := range export.ResourceSpans {
			for _, s := range in.ScopeSpans[0].Spans {
				if hex.EncodeToString(s.TraceId) == producerTrace {
					r.spans[hex.EncodeToString(s.SpanId)] = s
				}
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// ways are the spans of the trace as paths of names from the producer's span, and how often each came.
func (r *spanReceiver) ways(t *testing.T) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, s := range r.spans {
		way, at := s.Name, s
		for hex.EncodeToString(at.ParentSpanId) != producerSpan {
			if at = r.spans[hex.EncodeToString(at.ParentSpanId)]; at == nil {
				way = "? / " + way
				break
			}
			way = at.Name + " / " + way
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s ends before it starts", way)
		}
		out[way]++
	}
	return out
}

// await waits for spans, each by its way from the producer's span.
func (r *spanReceiver) await(t *testing.T, what, begin string, ways []string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for _, way := range ways {
		for got := r.ways(t); got[begin+way] == 0; got = r.ways(t) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no span %q; there are %v", what, begin+way, got)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// TestTracesOverHTTP follows a row that is posted, through the topic that is split by id, to its shard.
func TestTracesOverHTTP(t *testing.T) {
	rec := startReceiver(t)
	s := configure(t, oneDay+fmt.Sprintf("tracing: {endpoint: %q}\n", rec.URL))
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("pprof: true", "ingest: true", "keyed: true", "keyed: false").Replace(string(text))
	if err := os.WriteFile(s.file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, s)
	p.wait(time.Minute, "take a row", func() bool {
		req, err := http.NewRequest(http.MethodPost, "http://"+s.listen+"/api/v1/ingest/m/predictions",
			strings.NewReader(`{"id":"a","probs":[0.5,0.5]}`))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("traceparent", "00-"+producerTrace+"-"+producerSpan+"-01")
		req.Header.Set("tracestate", producerState)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	in, out := s.topic("logits"), s.prefix+"."+s.topic("logits")+fmt.Sprintf("-by-id-%d", partitions)
	rec.await(t, "of the shard", fmt.Sprintf("wait %s / process %s / send %s / ", in, in, out),
		[]string{fmt.Sprintf("wait %s / process %s / validate / pair / join / stats", out, out)})
	p.stop()
}

// TestTraces follows one message of a producer to the snapshot that it is part of, and the exemplars of its latencies
// to a real Prometheus. Then the collector goes away, and nothing waits for it. The state is that without traces.
func TestTraces(t *testing.T) {
	want := goodHash(t)
	rec := startReceiver(t)
	s := configure(t, oneDay+fmt.Sprintf("calibrated: {enabled: true}\ntracing: {endpoint: %q}\n", rec.URL))
	prometheus := exemplarStore(t, s.listen)
	p := run(t, s)
	good := goodStream(t, s)
	const followed = 10
	half := len(good) / 2
	for i := followed; !strings.HasSuffix(good[i].Topic, ".logits") || followTrace(&good[i]); i++ {
	}
	kafkatest.Write(t, brokers, good[:half]...)
	topics := func(way string) string { return strings.ReplaceAll(way, "TOPIC.", s.prefix+".") }
	process := topics("wait TOPIC.logits / process TOPIC.logits / ")
	ways := []string{"decode", "validate / pair / join / apply / stats", "wait for checkpoint", "save checkpoint",
		topics("validate / pair / join / apply / send TOPIC.calibrated"), "wait for label"}
	await := func(what string, ways []string) {
		t.Helper()
		rec.await(t, what, process, ways)
	}
	await("of the shard", ways)
	kafkatest.Write(t, brokers, good[half:]...)
	p.drain(goodRows, goodRows)
	pane := topics("wait for pane / send TOPIC.panes / wait TOPIC.panes / process TOPIC.panes / wait for pane / " +
		"pane / ")
	await("of the model task", []string{
		pane + "observe",
		pane + "window",
		pane + "alarm",
		pane + topics("observe / send TOPIC.snapshots"),
		"wait for label / " + pane + "window",
	})
	for way := range rec.ways(t) {
		if strings.HasPrefix(way, "? / ") {
			t.Errorf("a span without its parent: %s", way)
		}
	}
	if got := p.hashOf("good"); got != want {
		t.Errorf("the state is %s, want that without traces, %s", got, want)
	}
	carriesOn(t, s.topic("snapshots"), rec)
	carriesOn(t, s.topic("calibrated"), rec)
	exemplars(t, s.listen, prometheus)
	withoutCollector(t, p, rec, s)
	p.stop()
}

// followTrace gives a message the header of a producer that samples it.
func followTrace(m *kafka.Message) bool {
	m.Headers = append(m.Headers, kafka.Header{Key: "traceparent",
		Value: []byte("00-" + producerTrace + "-" + producerSpan + "-01")},
		kafka.Header{Key: "tracestate", Value: []byte(producerState)})
	return false
}

// carriesOn checks that outputs have the header of a span that the collector has.
func carriesOn(t *testing.T, topic string, rec *spanReceiver) {
	t.Helper()
	n := 0
	for _, m := range kafkatest.ReadAll(t, brokers, topic) {
		for i, h := range m.Headers {
			parts := strings.Split(string(h.Value), "-")
			if h.Key != "traceparent" || len(parts) != 4 || parts[1] != producerTrace {
				continue
			}
			n++
			if i+1 == len(m.Headers) || m.Headers[i+1].Key != "tracestate" ||
				string(m.Headers[i+1].Value) != producerState {
				t.Errorf("%s offset %d: headers %v, want the producer's tracestate", topic, m.Offset, m.Headers)
			}
			rec.mu.Lock()
			s := rec.spans[parts[2]]
			if s == nil || s.TraceState != producerState || s.Name != "send "+topic ||
				s.Kind != trace.Span_SPAN_KIND_PRODUCER {
				t.Errorf("%s offset %d: its span is %v", topic, m.Offset, s)
			}
			rec.mu.Unlock()
		}
	}
	if n == 0 {
		t.Errorf("no record of %s carries the trace on", topic)
	}
}

// exemplars checks that latencies have the trace, as OpenMetrics and in Prometheus.
func exemplars(t *testing.T, listen, prometheus string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+listen+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	want := regexp.MustCompile(`plumbline_latency_seconds_bucket\{step="process",task="(shard|model)",le="[^"]+"\} ` +
		`\d+ # \{trace_id="` + producerTrace + `"\}`)
	if err != nil || !want.Match(body) || !strings.HasSuffix(string(body), "# EOF\n") {
		t.Errorf("no line %s in /metrics (%v):\n%s", want, err, regexp.MustCompile(`(?m)^plumbline_latency.*$`).
			FindAll(body, 60))
	}
	if prometheus == "" {
		return
	}
	query := "http://" + prometheus + "/api/v1/query_exemplars?query=" +
		url.QueryEscape("plumbline_latency_seconds_bucket") + "&start=0&end=" + fmt.Sprint(time.Now().Unix()+60)
	var answer struct {
		Data []struct {
			Exemplars []struct{ Labels map[string]string }
		}
	}
	for range 100 {
		res, err := http.Get(query)
		if err == nil {
			err = json.NewDecoder(res.Body).Decode(&answer)
			_ = res.Body.Close()
		}
		for _, d := range answer.Data {
			for _, e := range d.Exemplars {
				if err == nil && e.Labels["trace_id"] == producerTrace {
					return
				}
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("Prometheus has no exemplar of the trace: %+v", answer)
}

// exemplarStore runs a Prometheus that keeps exemplars; "" where none is installed.
func exemplarStore(t *testing.T, target string) string {
	t.Helper()
	bin, err := exec.LookPath("prometheus")
	if err != nil {
		t.Log("no Prometheus on the PATH: exemplars are read from /metrics only")
		return ""
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`scrape_configs:
  - {job_name: plumbline, scrape_interval: 1s, static_configs: [{targets: [%q]}]}
`, target)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	startServer(t, address, bin, "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--enable-feature=exemplar-storage", "--web.listen-address="+address)
	return address
}

// withoutCollector takes the collector away: messages that are to be traced are processed as before, and their spans
// are counted as lost.
func withoutCollector(t *testing.T, p *process, rec *spanReceiver, s settings) {
	t.Helper()
	at := rec.Listener.Addr().String()
	rec.CloseClientConnections()
	rec.Close()
	hangs, err := net.Listen("tcp", at) // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	again := goodStream(t, s)[:200] // repeats, which change nothing
	for i := range again {
		followTrace(&again[i])
	}
	began := time.Now()
	kafkatest.Write(t, brokers, again...)
	p.wait(20*time.Second, "take what is to be traced", func() bool {
		st, err := p.status()
		return err == nil && st.Drained && st.Counts.Duplicates > 0
	})
	t.Logf("with a collector that hangs, %d messages to be traced took %s", len(again), time.Since(began))
	lost := regexp.MustCompile(`plumbline_trace_spans_total\{outcome="unreachable"\} [1-9]`)
	p.wait(time.Minute, "count the spans that are lost", func() bool {
		res, err := http.Get("http://" + s.listen + "/metrics")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return err == nil && lost.Match(body)
	})
}
