package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Bounds of what waits and of a request.
const (
	maxQueue   = 8192
	maxBatch   = 512
	gatherFor  = time.Second
	timeout    = 10 * time.Second
	retryAfter = 2 * time.Second
	retryFor   = 10 * time.Second
	lastTime   = 2 * time.Second // for what waits when the process ends
)

// What became of spans.
const (
	sent        = "sent"
	noRoom      = "no_room"     // the queue was full
	unreachable = "unreachable" // nobody took them for retryFor
	refused     = "refused"     // the collector will never take them
)

// Exporter sends spans.
type Exporter struct {
	url      string
	headers  http.Header
	resource []tracing.Attr
	version  string
	queue    chan tracing.Span
	counts   map[string]*atomic.Int64
	client   http.Client
	pause    time.Duration // between attempts
	log      *slog.Logger
}

// Process says who makes the spans.
type Process struct {
	Instance string // name of the machine
	Version  string // of the build
}

// New returns an exporter; Run sends what Export takes. The error is of the environment's variables.
func New(c Config, of Process, log *slog.Logger) (*Exporter, error) {
	e := &Exporter{
		url:     c.url(),
		headers: http.Header{},
		version: of.Version,
		queue:   make(chan tracing.Span, maxQueue),
		counts:  map[string]*atomic.Int64{},
		client:  http.Client{Timeout: timeout, CheckRedirect: stay},
		pause:   retryAfter,
		log:     log,
	}
	for _, outcome := range []string{sent, noRoom, unreachable, refused} {
		e.counts[outcome] = new(atomic.Int64)
	}
	named := map[string]string{"service.name": "plumbline", "service.version": of.Version,
		"service.instance.id": of.Instance}
	attrs, err := pairs("OTEL_RESOURCE_ATTRIBUTES")
	if err != nil {
		return nil, err
	}
	for _, a := range attrs {
		named[a[0]] = a[1]
	}
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		named["service.name"] = name
	}
	for name, value := range named {
		e.resource = append(e.resource, tracing.Attr{Key: name, Value: value})
	}
	headers, err := pairs("OTEL_EXPORTER_OTLP_HEADERS")
	for _, h := range headers {
		e.headers.Set(h[0], h[1])
	}
	e.headers.Set("Content-Type", "application/x-protobuf")
	return e, err
}

// pairs reads a variable of the form name=value,name=value, with values as in URLs. Values may be secrets.
func pairs(variable string) (out [][2]string, err error) {
	for _, p := range strings.Split(os.Getenv(variable), ",") {
		if strings.TrimSpace(p) == "" {
			continue
		}
		name, value, ok := strings.Cut(p, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, fmt.Errorf("environment variable %s: must be name=value,name=value, values as in URLs",
				variable)
		}
		out = append(out, [2]string{name, decoded})
	}
	return out, nil
}

// Export takes a span. It never blocks.
func (e *Exporter) Export(s tracing.Span) {
	select {
	case e.queue <- s:
	default:
		e.counts[noRoom].Add(1)
	}
}

// Run sends spans until ctx is done, and then for a moment what still waits.
func (e *Exporter) Run(ctx context.Context) {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, cancel) })()
	for ctx.Err() == nil {
		if spans := e.gather(ctx); len(spans) > 0 {
			e.send(requests, spans)
		}
	}
	for len(e.queue) > 0 && requests.Err() == nil {
		e.send(requests, e.drain(nil))
	}
	e.counts[unreachable].Add(int64(len(e.queue)))
}

// gather waits for a span, and for a moment for those that follow it.
func (e *Exporter) gather(ctx context.Context) (spans []tracing.Span) {
	select {
	case s := <-e.queue:
		spans = append(spans, s)
	case <-ctx.Done():
		return nil
	}
	t := time.NewTimer(gatherFor)
	defer t.Stop()
	for len(spans) < maxBatch {
		select {
		case s := <-e.queue:
			spans = append(spans, s)
		case <-t.C:
			return spans
		case <-ctx.Done():
			return e.drain(spans)
		}
	}
	return spans
}

// drain adds what is in the queue.
func (e *Exporter) drain(spans []tracing.Span) []tracing.Span {
	for len(spans) < maxBatch {
		select {
		case s := <-e.queue:
			spans = append(spans, s)
		default:
			return spans
		}
	}
	return spans
}

// send tries to send spans until the collector takes or refuses them, or their time is over.
func (e *Exporter) send(ctx context.Context, spans []tracing.Span) {
	body := encode(e.resource, e.version, spans)
	for until := time.Now().Add(retryFor); ; {
		rejected, err := e.post(ctx, body)
		n := int64(len(spans))
		var no *refusal
		switch {
		case err == nil:
			e.counts[sent].Add(n - rejected)
			e.counts[refused].Add(rejected)
			return
		case errors.As(err, &no):
			e.log.Warn("the collector refuses spans", "url", e.url, faultlog.Err(err))
			e.counts[refused].Add(n)
			return
		}
		if time.Now().After(until) || ctx.Err() != nil {
			e.counts[unreachable].Add(n)
			return
		}
		e.log.Warn("spans do not reach the collector, trying again", "url", e.url, faultlog.Err(err))
		backoff.Sleep(ctx, e.pause)
	}
}

// refusal is an answer that trying again does not change.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// post sends a request; rejected is how many of its spans an answer does not take.
func (e *Exporter) post(ctx context.Context, body []byte) (rejected int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = e.headers.Clone()
	res, err := e.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return e.partial(text), nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, errors.New(res.Status)
	}
	return 0, &refusal{fmt.Sprintf("%s: %.200q", res.Status, text)}
}

// stay follows no redirection: it would be a GET without the spans, whose answer says nothing of them.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// partial reads how many spans an answer does not take: partial_success = 1, of which rejected_spans = 1,
// error_message = 2.
func (e *Exporter) partial(answer []byte) (rejected int64) {
	_, success := fields(answer)
	numbers, texts := fields(success[1])
	if rejected = int64(numbers[1]); rejected <= 0 || rejected > maxBatch {
		return 0
	}
	e.log.Warn("the collector does not take all spans", "url", e.url, "spans", rejected,
		faultlog.Err(fmt.Errorf("%.200q", texts[2])))
	return rejected
}

var descSpans = prometheus.NewDesc("plumbline_trace_spans_total",
	"Spans by what became of them: sent, no_room, unreachable, refused.", []string{"outcome"}, nil)

// Describe implements prometheus.Collector.
func (e *Exporter) Describe(ch chan<- *prometheus.Desc) { ch <- descSpans }

// Collect implements prometheus.Collector.
func (e *Exporter) Collect(ch chan<- prometheus.Metric) {
	for outcome, n := range e.counts {
		ch <- prometheus.MustNewConstMetric(descSpans, prometheus.CounterValue, float64(n.Load()), outcome)
	}
}
