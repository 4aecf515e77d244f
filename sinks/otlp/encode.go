package otlp

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/plumbline/plumbline/pipeline/tracing"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/plumbline/plumbline"

// encode appends an ExportTraceServiceRequest: resource_spans = 1, of which resource = 1, scope_spans = 2.
func encode(resource []tracing.Attr, version string, spans []tracing.Span) []byte {
	var attrs []byte
	for _, a := range resource {
		attrs = appendAttr(attrs, 1, a)
	}
	in := appendText(nil, 1, scope)
	in = appendText(in, 2, version)
	scoped := appendBytes(nil, 1, in)
	for i := range spans {
		scoped = appendBytes(scoped, 2, span(&spans[i]))
	}
	return appendBytes(nil, 1, appendBytes(appendBytes(nil, 1, attrs), 2, scoped))
}

// Fields of a span.
const (
	fieldTrace  = 1
	fieldSpan   = 2
	fieldState  = 3
	fieldParent = 4
	fieldName   = 5
	fieldKind   = 6
	fieldStart  = 7
	fieldEnd    = 8
	fieldAttrs  = 9
	fieldStatus = 15
	// In a status: message = 2, code = 3.
	statusError = 2
)

func span(s *tracing.Span) []byte {
	b := appendBytes(nil, fieldTrace, s.Trace[:])
	b = appendBytes(b, fieldSpan, s.Context.Span[:])
	if s.State != "" {
		b = appendText(b, fieldState, s.State)
	}
	if s.Parent != (tracing.SpanID{}) {
		b = appendBytes(b, fieldParent, s.Parent[:])
	}
	b = appendText(b, fieldName, s.Name)
	b = appendNumber(b, fieldKind, uint64(s.Kind))
	b = appendFixed(b, fieldStart, s.Start.UnixNano())
	b = appendFixed(b, fieldEnd, s.End.UnixNano())
	for _, a := range s.Attrs {
		b = appendAttr(b, fieldAttrs, a)
	}
	if s.Err != "" {
		b = appendBytes(b, fieldStatus, appendNumber(appendText(nil, 2, s.Err), 3, statusError))
	}
	return b
}

// appendAttr appends a KeyValue: key = 1, value = 2, which is string_value = 1 or int_value = 3.
func appendAttr(b []byte, field protowire.Number, a tracing.Attr) []byte {
	var value []byte
	switch v := a.Value.(type) {
	case string:
		value = appendText(nil, 1, v)
	case int64:
		value = appendNumber(nil, 3, uint64(v))
	}
	return appendBytes(b, field, appendBytes(appendText(nil, 1, a.Key), 2, value))
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

// appendText appends text, which protobuf wants in UTF-8.
func appendText(b []byte, field protowire.Number, value string) []byte {
	return appendBytes(b, field, []byte(strings.ToValidUTF8(value, "�")))
}

func appendNumber(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendFixed(b []byte, field protowire.Number, value int64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(value))
}

// fields are the numbers and the bytes of a message, by field; what cannot be read is left out.
func fields(b []byte) (numbers map[protowire.Number]uint64, bodies map[protowire.Number][]byte) {
	numbers, bodies = map[protowire.Number]uint64{}, map[protowire.Number][]byte{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(field, kind, b[n:])
		if size < 0 {
			break
		}
		switch kind {
		case protowire.VarintType:
			numbers[field], _ = protowire.ConsumeVarint(b[n:])
		case protowire.BytesType:
			bodies[field], _ = protowire.ConsumeBytes(b[n:])
		}
		b = b[n+size:]
	}
	return numbers, bodies
}
