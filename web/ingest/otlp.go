package ingest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/web/budget"
	"github.com/plumbline/plumbline/web/reply"
)

// telemetrySize is how many times its bytes an export takes while it is read; one of small messages up to mostHeld.
const telemetrySize = 8

// sharedBytes is the most bytes of a resource's attributes that become columns: each of its records has them.
const sharedBytes = 2048

// The attributes that become columns, by column, first ones first. Those of a record come before those of its resource.
var attributeNames = map[string][]string{
	"id":       {"plumbline.id", "gen_ai.response.id"},
	"model":    {"plumbline.model", "gen_ai.response.model", "gen_ai.request.model", "service.name"},
	"version":  {"plumbline.version", "service.version"},
	"label":    {"plumbline.label", "gen_ai.evaluation.score.value"},
	"logits":   {"plumbline.logits"},
	"probs":    {"plumbline.probs"},
	"logit":    {"plumbline.logit"},
	"prob":     {"plumbline.prob"},
	"features": {"plumbline.features"},
	"served":   {"plumbline.served"},
	"weight":   {"plumbline.weight"},
}

var scoreColumns = []string{"logits", "probs", "logit", "prob"}

// otlpKind is an endpoint of OTLP over HTTP.
type otlpKind struct {
	path     string
	spans    bool
	rejected string // field of the answer in JSON
}

var otlpKinds = []otlpKind{{"otlp/v1/logs", false, "rejectedLogRecords"}, {"otlp/v1/traces", true, "rejectedSpans"}}

// takeOTLP takes an export of logs or of spans.
func (h *Handler) takeOTLP(w http.ResponseWriter, r *http.Request, kind otlpKind) {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	a := otlpAnswer{w: w, inJSON: t == "application/json", kind: kind}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		a.fail(http.StatusMethodNotAllowed, "method "+r.Method+" is not allowed here: POST")
		return
	}
	if !a.inJSON && t != "application/x-protobuf" {
		reply.Error(w, http.StatusUnsupportedMediaType, fmt.Sprintf("Content-Type %.80q: must be "+
			"application/x-protobuf or application/json", r.Header.Get("Content-Type")))
		return
	}
	body, free, err := h.readOTLP(r)
	defer free()
	done := func() {}
	if err == nil {
		done, err = h.budget.Turn(r.Context(), telemetrySize*int64(len(body)))
	}
	if err != nil {
		code, msg := refusal(w, err)
		if code == http.StatusRequestTimeout {
			code = http.StatusServiceUnavailable // exporters send again after 429, 502, 503 and 504 only
		}
		a.fail(code, msg)
		return
	}
	defer done()
	x := &export{}
	switch {
	case !a.inJSON:
		err = x.protobuf(body, kind.spans)
	case hollow(body):
		err = errHollow
	default:
		err = json.Unmarshal(body, x)
	}
	if err != nil {
		a.fail(http.StatusBadRequest, err.Error())
		return
	}
	h.writeOTLP(r, &a, x)
}

// errEncoding refuses a body in an encoding that is not read.
var errEncoding = errors.New("must be gzip, or none")

// readOTLP reads a body, which may be compressed by gzip: what is held is what it inflates to, as it comes.
func (h *Handler) readOTLP(r *http.Request) (body []byte, free func(), err error) {
	in := budget.Body{From: r.Body, Length: r.ContentLength, Most: h.MaxBody}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		// Twice, so that what does not compress is too large before it is cut; and an end, as members may be empty.
		z, err := gzip.NewReader(io.LimitReader(r.Body, 2*int64(h.MaxBody)))
		if err != nil {
			return nil, func() {}, err
		}
		in.From, in.Length = z, -1
	default:
		return nil, func() {}, fmt.Errorf("Content-Encoding %.40q: %w", encoding, errEncoding)
	}
	return h.budget.Read(r.Context(), in)
}

// writeOTLP writes the rows of an export and answers when they are durable.
func (h *Handler) writeOTLP(r *http.Request, a *otlpAnswer, x *export) {
	predictions, labels, err := h.rows(x, a.kind.spans)
	if err != nil {
		a.fail(http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	if h.NoLabels {
		labels = nil // they come with their predictions
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var total telemetryAnswer
	for kind, lines := range map[arrowio.Kind][][]byte{arrowio.Predictions: predictions, arrowio.Labels: labels} {
		messages := h.readLines(kind, lines, &total)
		if err := h.put(ctx, a.w, kind, messages); err != nil {
			a.fail(http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	a.done(&total)
}

// telemetryAnswer counts records whose attributes make no row.
type telemetryAnswer struct {
	rejected int
	first    string
}

func (a *telemetryAnswer) reject(n int, why string) {
	if a.rejected += n; a.first == "" {
		a.first = why
	}
}

// readLines makes messages of rows, as many at a time as a message may have. Where one is wrong, the others count.
func (h *Handler) readLines(kind arrowio.Kind, lines [][]byte, a *telemetryAnswer) (messages [][]byte) {
	rd := h.telemetry[kind].Get().(*reader)
	defer h.telemetry[kind].Put(rd)
	var read func(lines [][]byte)
	read = func(lines [][]byte) {
		ms, answer, err := rd.read(&request{kind: kind, anyModel: true, body: bytes.Join(lines, []byte("\n"))})
		switch {
		case err == nil:
			messages = append(messages, ms...)
			if answer.Rejected > 0 {
				first := &answer.First[0]
				a.reject(answer.Rejected, first.Reason+": in the dead-letter topic: "+first.Detail)
			}
		case len(lines) == 1:
			a.reject(1, err.Error())
		default:
			read(lines[:len(lines)/2])
			read(lines[len(lines)/2:])
		}
	}
	for from, to := 0, 0; from < len(lines); from = to {
		size := 0
		for to < len(lines) && (to == from || size+len(lines[to]) < h.MaxBody/2) {
			size += len(lines[to]) + 1
			to++
		}
		read(lines[from:to])
	}
	return messages
}

// newTelemetryReader has the default paths of JSON, the model's included.
func (h *Handler) newTelemetryReader(rows string) *reader {
	o := inputs.Options{Slices: h.Slices, MaxBytes: h.MaxBody}
	d, err := inputs.New(inputs.Config{Format: "json", Rows: rows}, o)
	if err != nil {
		panic("ingest: " + err.Error())
	}
	return &reader{d, h.arrow(), h.Refused}
}

// rows are those of predictions and of labels, as lines of JSON. Records with neither are passed over.
func (h *Handler) rows(x *export, spans bool) (predictions, labels [][]byte, err error) {
	size := 0
	err = x.each(spans, h.columnsOf, func(resource attributes, t *telemetry) error {
		line, scored := h.line(t, resource)
		switch {
		case scored:
			predictions = append(predictions, line)
		case line != nil:
			labels = append(labels, line)
		}
		if size += len(line); size > telemetrySize*h.MaxBody {
			return fmt.Errorf("rows of more than %d bytes as JSON: send fewer at a time", telemetrySize*h.MaxBody)
		}
		return nil
	})
	return predictions, labels, err
}

// line is the row of a record, of a prediction where it has scores and else of a label; nil where it has neither.
func (h *Handler) line(t *telemetry, resource attributes) (line []byte, scored bool) {
	find := func(names ...string) *anyValue { return cmp.Or(t.Attributes.first(names), resource.first(names)) }
	scored = slices.ContainsFunc(scoreColumns, func(column string) bool {
		return t.Attributes.get("plumbline."+column) != nil
	})
	if !scored && !find(attributeNames["label"]...).class() {
		return nil, false
	}
	begin := func(field string) []byte { return append(appendText(append(line, ','), field), ':') }
	if at := t.time(); at > 0 {
		line = strconv.AppendUint(begin("ts"), uint64(at), 10)
	}
	for column, names := range attributeNames {
		if v := find(names...); v != nil && (column != "label" || v.class()) {
			line = v.appendJSON(begin(column))
		}
	}
	if find(attributeNames["id"]...) == nil && t.SpanID != "" {
		line = appendText(begin("id"), t.TraceID+"-"+t.SpanID)
	}
	for _, name := range h.Slices {
		if v := find(name); v != nil && attributeNames[name] == nil && scored {
			line = v.appendJSON(begin(name))
		}
	}
	line[0] = '{' // in place of a comma: it has the score or the label at least
	return append(line, '}'), scored
}

// columnsOf are the attributes of a resource that may become columns.
func (h *Handler) columnsOf(all attributes) (attributes, error) {
	first := map[string]*attribute{}
	for i := range all {
		if a := &all[i]; first[a.Key] == nil && a.Value != (anyValue{}) {
			first[a.Key] = a
		}
	}
	var out attributes
	size := 0
	for _, names := range append(slices.Collect(maps.Values(attributeNames)), h.Slices) {
		for _, name := range names {
			if a := first[name]; a != nil {
				out = append(out, *a)
				size += len(a.Value.appendJSON(nil))
			}
		}
	}
	if size > sharedBytes {
		return nil, fmt.Errorf("attributes of a resource have %d bytes as columns, allowed: %d", size, sharedBytes)
	}
	return out, nil
}

// time is when a record was made: a span at its end.
func (t *telemetry) time() nanos {
	for _, at := range []nanos{t.EndTimeUnixNano, t.TimeUnixNano, t.ObservedTimeUnixNano} {
		if at > 0 {
			return at
		}
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic("ingest: text does not encode: " + err.Error())
	}
	return append(b, text...)
}

// class reports whether a value can be a label: an evaluation may have a score between 0 and 1 instead.
func (v *anyValue) class() bool {
	if v == nil {
		return false
	}
	return v.DoubleValue == nil || float64(*v.DoubleValue) == math.Trunc(float64(*v.DoubleValue))
}

// appendJSON appends a value; what JSON has no number for is null, and so are values with names in them.
func (v *anyValue) appendJSON(b []byte) []byte {
	switch {
	case v.StringValue != nil:
		return appendText(b, *v.StringValue)
	case v.BoolValue != nil:
		return strconv.AppendBool(b, *v.BoolValue)
	case v.IntValue != nil:
		return strconv.AppendInt(b, int64(*v.IntValue), 10)
	case v.DoubleValue != nil && !math.IsNaN(float64(*v.DoubleValue)) && !math.IsInf(float64(*v.DoubleValue), 0):
		return strconv.AppendFloat(b, float64(*v.DoubleValue), 'g', -1, 64)
	case v.ArrayValue != nil:
		b = append(b, '[')
		for i := range v.ArrayValue.Values {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.ArrayValue.Values[i].appendJSON(b)
		}
		return append(b, ']')
	}
	return append(b, "null"...)
}

// otlpAnswer answers as the protocol has it, in the encoding of the request.
type otlpAnswer struct {
	w      http.ResponseWriter
	inJSON bool
	kind   otlpKind
}

// done says how many rows were rejected: ExportLogsServiceResponse or that of spans, partial_success = 1, of which the
// number = 1, error_message = 2.
func (a *otlpAnswer) done(total *telemetryAnswer) {
	why := ""
	if total.rejected > 0 {
		why = fmt.Sprintf("%d rejected, the first: %s", total.rejected, total.first)
	}
	if a.inJSON {
		out := map[string]any{}
		if why != "" {
			out["partialSuccess"] = map[string]string{
				a.kind.rejected: strconv.Itoa(total.rejected),
				"errorMessage":  why,
			}
		}
		_ = reply.JSON(a.w, http.StatusOK, out)
		return
	}
	var b []byte
	if why != "" {
		b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(total.rejected))
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), why)
		b = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	a.send(http.StatusOK, b)
}

// fail answers with google.rpc.Status: code = 1, message = 2.
func (a *otlpAnswer) fail(code int, msg string) {
	if a.inJSON {
		_ = reply.JSON(a.w, code, map[string]any{"code": code, "message": msg})
		return
	}
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	a.send(code, protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), msg))
}

func (a *otlpAnswer) send(code int, body []byte) {
	a.w.Header().Set("Cache-Control", "no-store")
	reply.Send(a.w, code, "application/x-protobuf", body)
}

// whole, nanos and double are numbers that OTLP in JSON may write as text.
type (
	whole  int64
	nanos  uint64
	double float64
)

func unquoted(b []byte) string { return string(bytes.Trim(b, `"`)) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *whole) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(unquoted(b), 10, 64)
	*n = whole(v)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *nanos) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(unquoted(b), 10, 63)
	*n = nanos(v)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *double) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(unquoted(b), 64)
	*n = double(v)
	return err
}
