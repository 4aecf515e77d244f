package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/tracing"
	"github.com/plumbline/plumbline/web/budget"
	"github.com/plumbline/plumbline/web/reply"
)

// Writer makes messages durable.
type Writer interface {
	// Put returns nil when all messages, in Arrow, are durable. They may be written in part where it returns an error.
	Put(ctx context.Context, kind arrowio.Kind, messages [][]byte) error
}

// Prefix is the path under which a Handler serves.
const Prefix = "/api/v1/ingest/"

// Bounds of requests.
const (
	// maxInFlight is how many bytes of bodies are held at a time, and how many are in use for reading exports.
	maxInFlight = 64 << 20
	// roomWait is how long a request waits for room, and patience how long Kafka may take: exporters of OpenTelemetry
	// give up after ten seconds.
	roomWait = 3 * time.Second
	patience = 6 * time.Second
	// maxNamed bounds the rows that an answer names, but for the first row of each reason.
	maxNamed = 10
)

// Options say what is taken.
type Options struct {
	Slices  []string // names of the slice columns
	MaxBody int
	// NoLabels: nobody reads labels of their own.
	NoLabels bool
	// Refused calls see for each row of a batch that will take no part, as far as that is known before a shard reads
	// it, with the reason, and in words what the first row of that reason has and what is allowed.
	Refused func(b *arrowio.Batch, see func(row int, reason, detail string))
	Log     *slog.Logger
}

// Handler answers POST …/{model}/predictions, …/{model}/labels, …/otlp/v1/logs and …/otlp/v1/traces.
type Handler struct {
	Options
	writer Writer
	budget *budget.Budget
	pools  [2]sync.Pool // of *reader, by kind
	// telemetry are those of exports, whose rows name their models.
	telemetry [2]sync.Pool
	mux       *http.ServeMux
}

// reader decodes the rows of one kind.
type reader struct {
	json    *inputs.Decoder
	arrow   *arrowio.Decoder
	refused func(b *arrowio.Batch, see func(row int, reason, detail string))
}

// New returns the handler.
func New(w Writer, o Options) *Handler {
	h := &Handler{Options: o, writer: w, mux: http.NewServeMux(),
		budget: budget.New(budget.Options{Bodies: maxInFlight, Work: maxInFlight, Patience: roomWait})}
	for kind, rows := range map[arrowio.Kind]string{arrowio.Predictions: "predictions", arrowio.Labels: "labels"} {
		h.pools[kind].New = func() any { return h.newReader(rows) }
		h.telemetry[kind].New = func() any { return h.newTelemetryReader(rows) }
		h.mux.HandleFunc(Prefix+"{model}/"+rows, func(w http.ResponseWriter, r *http.Request) { h.take(w, r, kind) })
	}
	for _, kind := range otlpKinds {
		h.mux.HandleFunc(Prefix+kind.path, func(w http.ResponseWriter, r *http.Request) { h.takeOTLP(w, r, kind) })
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply.Error(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	})
	return h
}

// newReader has the default paths of JSON, but for the model, which the request's path names.
func (h *Handler) newReader(rows string) *reader {
	c := inputs.Config{Format: "json", Rows: rows, Model: "m", Columns: inputs.Columns{Model: inputs.NoPath}}
	d, err := inputs.New(c, inputs.Options{Slices: h.Slices, MaxBytes: h.MaxBody})
	if err != nil {
		panic("ingest: " + err.Error())
	}
	return &reader{d, h.arrow(), h.Refused}
}

func (h *Handler) arrow() *arrowio.Decoder {
	return arrowio.NewDecoder(arrowio.Options{Slices: h.Slices, MaxMessageBytes: h.MaxBody})
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	place := tracing.Carrier{
		Parent: r.Header.Get(tracing.Header),
		State:  strings.Join(r.Header.Values(tracing.StateHeader), ","),
	}
	h.mux.ServeHTTP(w, r.WithContext(tracing.WithCarrier(r.Context(), place)))
}

func (h *Handler) take(w http.ResponseWriter, r *http.Request, kind arrowio.Kind) {
	if !reply.Allows(w, r, http.MethodPost) {
		return
	}
	if kind == arrowio.Labels && h.NoLabels {
		reply.Error(w, http.StatusBadRequest, "topics.labels is empty: labels come with their predictions here")
		return
	}
	version, err := versionOf(r)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	inArrow, err := isArrow(r)
	if err != nil {
		reply.Error(w, http.StatusUnsupportedMediaType, err.Error())
		return
	}
	if n := r.ContentLength; n > int64(h.MaxBody) {
		// Clients that send all before they read would see a broken connection in place of the answer.
		_, _ = io.CopyN(io.Discard, r.Body, min(n, mostDrained))
		code, msg := refusal(w, budget.TooLarge(h.MaxBody))
		reply.Error(w, code, msg)
		return
	}
	body, free, err := h.budget.Read(r.Context(),
		budget.Body{From: r.Body, Length: r.ContentLength, Most: h.MaxBody})
	defer free()
	if err == nil && len(bytes.TrimSpace(body)) == 0 {
		err = errors.New("is empty: send at least one row")
	}
	if err != nil {
		code, msg := refusal(w, err)
		reply.Error(w, code, msg)
		return
	}
	h.write(w, r, request{kind: kind, model: r.PathValue("model"), version: version, arrow: inArrow, body: body})
}

// mostDrained is how much is read of a body that is too large.
const mostDrained = 64 << 20

// refusal is the answer where a body could not be read. Where there is no room it is 503, not 429, for which some
// exporters drop what they sent; where the network was too slow it is no 400, for which all do.
func refusal(w http.ResponseWriter, err error) (code int, msg string) {
	var large budget.TooLarge
	switch {
	case errors.Is(err, budget.ErrBusy):
		w.Header().Set("Retry-After", "1")
		return http.StatusServiceUnavailable, err.Error()
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, err.Error() + " (kafka.message_max_bytes): send fewer rows at a time"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the body did not come in time: send it again, or fewer rows"
	case errors.Is(err, errEncoding):
		return http.StatusUnsupportedMediaType, err.Error()
	}
	return http.StatusBadRequest, "body: " + err.Error()
}

// request is one that was read.
type request struct {
	kind           arrowio.Kind
	model, version string
	anyModel       bool // rows name their models
	arrow          bool
	body           []byte
}

// Answer is that of a request whose rows are durable.
type Answer struct {
	Rows int `json:"rows"`
	// Rejected rows are written, and will be in the dead-letter topic.
	Rejected int           `json:"rejected"`
	First    []RejectedRow `json:"first_rejected,omitempty"`
}

// RejectedRow is a row that takes no part.
type RejectedRow struct {
	Row    int    `json:"row"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"` // of the first row of a reason
}

// write checks the rows of a request, and answers when they are durable.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, q request) {
	rd := h.pools[q.kind].Get().(*reader)
	messages, answer, err := rd.read(&q)
	h.pools[q.kind].Put(rd)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if err := h.put(ctx, w, q.kind, messages); err != nil {
		reply.Error(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	_ = reply.JSON(w, http.StatusOK, answer)
}

// put writes messages; the answer to an error is 503.
func (h *Handler) put(ctx context.Context, w http.ResponseWriter, kind arrowio.Kind, messages [][]byte) error {
	if len(messages) == 0 {
		return nil
	}
	err := h.writer.Put(ctx, kind, messages)
	if err == nil {
		return nil
	}
	h.Log.Warn("rows over HTTP were not written", faultlog.Err(err))
	w.Header().Set("Retry-After", "5")
	return errors.New("not all rows could be written yet: send them again; an id that was written counts once")
}

// read decodes the body, and every message once more as a shard will.
func (rd *reader) read(q *request) (messages [][]byte, a Answer, err error) {
	messages = [][]byte{q.body}
	now := time.Now().UnixNano()
	if !q.arrow {
		if messages, err = rd.json.DecodeOf(q.model, q.version, &inputs.Record{Value: q.body, Time: now}); err != nil {
			return nil, a, err
		}
		messages = slices.Clone(messages) // others use the decoder before these are sent
		for i := range messages {
			messages[i] = bytes.Clone(messages[i])
		}
	}
	for _, m := range messages {
		bs, err := rd.arrow.Decode(m, arrowio.Origin{Time: now}, q.kind)
		if err != nil {
			return nil, a, err
		}
		for _, b := range bs {
			if err == nil {
				err = rd.add(&a, b, q)
			}
			b.Release()
		}
		if err != nil {
			return nil, a, err
		}
	}
	return messages, a, nil
}

// add counts the rows of a batch. The first row of each reason is named, however late it comes.
func (rd *reader) add(a *Answer, b *arrowio.Batch, q *request) error {
	for _, m := range b.Models {
		if !q.anyModel && m.Model != q.model && (q.kind == arrowio.Predictions || m.Model != "") {
			return wire.Errorf("model", "rows of model %.80q, the path says %.80q", m.Model, q.model)
		}
	}
	rd.refused(b, func(row int, reason, detail string) {
		a.Rejected++
		known := slices.ContainsFunc(a.First, func(r RejectedRow) bool { return r.Reason == reason })
		if known {
			detail = ""
		}
		if len(a.First) < maxNamed || !known {
			a.First = append(a.First, RejectedRow{a.Rows + row, reason, detail})
		}
	})
	a.Rows += b.N
	return nil
}

func versionOf(r *http.Request) (string, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	for name, values := range q {
		if name != "version" {
			return "", fmt.Errorf("unknown parameter %q; allowed: version", name)
		}
		if len(values) > 1 {
			return "", fmt.Errorf("version: given %d times; once is allowed", len(values))
		}
	}
	return q.Get("version"), nil
}

// isArrow reads the content type.
func isArrow(r *http.Request) (bool, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return false, fmt.Errorf("Content-Encoding %.40q: send the body as it is", enc)
	}
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && t == "application/vnd.apache.arrow.stream":
		return true, nil
	case err == nil && (t == "application/json" || t == "application/x-ndjson"):
		return false, nil
	}
	return false, fmt.Errorf("Content-Type %.80q: must be application/json, application/x-ndjson or "+
		"application/vnd.apache.arrow.stream", r.Header.Get("Content-Type"))
}
