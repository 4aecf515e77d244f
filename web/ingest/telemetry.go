package ingest

import (
	"encoding/hex"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// export is ExportLogsServiceRequest or ExportTraceServiceRequest, with what is read of them.
type export struct {
	ResourceLogs  []resource `json:"resourceLogs"`
	ResourceSpans []resource `json:"resourceSpans"`
}

type resource struct {
	Resource   struct{ Attributes attributes }
	ScopeLogs  []scope `json:"scopeLogs"`
	ScopeSpans []scope `json:"scopeSpans"`
}

type scope struct {
	LogRecords []telemetry `json:"logRecords"`
	Spans      []telemetry `json:"spans"`
}

// telemetry is a log record or a span.
type telemetry struct {
	TimeUnixNano         nanos `json:"timeUnixNano"`
	ObservedTimeUnixNano nanos `json:"observedTimeUnixNano"`
	EndTimeUnixNano      nanos `json:"endTimeUnixNano"`
	Attributes           attributes
	TraceID              string `json:"traceId"` // hexadecimal
	SpanID               string `json:"spanId"`
}

type attributes []attribute

type attribute struct {
	Key   string
	Value anyValue
}

// anyValue is a value of an attribute; of another kind it has none of these.
type anyValue struct {
	StringValue *string     `json:"stringValue"`
	BoolValue   *bool       `json:"boolValue"`
	IntValue    *whole      `json:"intValue"`
	DoubleValue *double     `json:"doubleValue"`
	ArrayValue  *arrayValue `json:"arrayValue"`
}

type arrayValue struct{ Values []anyValue }

// get is the value of an attribute that has one.
func (as attributes) get(key string) *anyValue {
	for i := range as {
		if as[i].Key == key && as[i].Value != (anyValue{}) {
			return &as[i].Value
		}
	}
	return nil
}

// first is the value of the first of the names that is there; nil = none.
func (as attributes) first(names []string) *anyValue {
	for _, name := range names {
		if v := as.get(name); v != nil {
			return v
		}
	}
	return nil
}

// each calls take for each record, with what columns says of the attributes of its resource.
func (x *export) each(spans bool, columns func(attributes) (attributes, error),
	take func(columns attributes, t *telemetry) error) error {
	resources := x.ResourceLogs
	if spans {
		resources = x.ResourceSpans
	}
	for i := range resources {
		shared, err := columns(resources[i].Resource.Attributes)
		if err != nil {
			return err
		}
		scopes := resources[i].ScopeLogs
		if spans {
			scopes = resources[i].ScopeSpans
		}
		for j := range scopes {
			records := scopes[j].LogRecords
			if spans {
				records = scopes[j].Spans
			}
			for k := range records {
				if err := take(shared, &records[k]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// What a message takes while an export is read, in bytes, about, and how many times its own bytes an export may take.
// An empty message is two bytes, so a body of them would take a hundred times its size. The least with content, a whole
// number in an array, is four.
const (
	heldResource  = 220
	heldScope     = 120
	heldRecord    = 240
	heldAttribute = 140
	heldValue     = 104
	mostHeld      = 32
	fewHeld       = 1 << 20 // is allowed to any export
)

var errHollow = fmt.Errorf("too many empty messages: it would take more than %d times its bytes to read", mostHeld)

// hollow reports whether a body in JSON has more values than it has content for: one for every 8 bytes, where one with
// content has 14.
func hollow(body []byte) bool {
	values, inText := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case c == ',' && !inText:
			values++
		}
	}
	return values > len(body)/8+1000
}

// field is one of a message in Protobuf: its bytes, or its number.
type field struct {
	number protowire.Number
	v      []byte
	n      uint64
	left   *int // bytes of memory that the export may still take
}

// fields reads the fields of a message, which takes so many bytes of memory.
func fields(message field, held int, each func(f field) error) error {
	if *message.left -= held; *message.left < 0 {
		return errHollow
	}
	b := message.v
	size := len(b)
	for len(b) > 0 {
		number, kind, head := protowire.ConsumeTag(b)
		if head < 0 {
			return fmt.Errorf("%d bytes before the end of a message in Protobuf: %w", len(b),
				protowire.ParseError(head))
		}
		f, length := field{number: number, left: message.left}, 0
		switch b = b[head:]; kind {
		case protowire.BytesType:
			f.v, length = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.n, length = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.n, length = protowire.ConsumeFixed64(b)
		default:
			length = protowire.ConsumeFieldValue(number, kind, b)
		}
		if length < 0 {
			return fmt.Errorf("byte %d of a message in Protobuf, field %d: %w", size-len(b), number,
				protowire.ParseError(length))
		}
		b = b[length:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// protobuf reads an export: resource_logs or resource_spans = 1, of which resource = 1 (attributes = 1) and scope_logs
// or scope_spans = 2, of which log_records or spans = 2.
func (x *export) protobuf(b []byte, spans bool) error {
	left := mostHeld*len(b) + fewHeld
	return fields(field{v: b, left: &left}, 0, func(f field) error {
		if f.number != 1 {
			return nil
		}
		r := resource{}
		err := fields(f, heldResource, func(f field) error {
			switch f.number {
			case 1:
				return fields(f, 0, func(f field) error {
					return r.Resource.Attributes.add(f, 1)
				})
			case 2:
				records, err := telemetryOf(f, spans)
				r.ScopeLogs = append(r.ScopeLogs, scope{LogRecords: records, Spans: records})
				return err
			}
			return nil
		})
		r.ScopeSpans = r.ScopeLogs
		x.ResourceLogs = append(x.ResourceLogs, r)
		x.ResourceSpans = x.ResourceLogs
		return err
	})
}

func telemetryOf(message field, spans bool) (out []telemetry, err error) {
	return out, fields(message, heldScope, func(f field) error {
		if f.number != 2 {
			return nil
		}
		t := telemetry{}
		read := t.log
		if spans {
			read = t.span
		}
		err := fields(f, heldRecord, read)
		out = append(out, t)
		return err
	})
}

// log reads a field of LogRecord: time = 1, attributes = 6, trace_id = 9, span_id = 10, observed time = 11.
func (t *telemetry) log(f field) error {
	switch f.number {
	case 1:
		t.TimeUnixNano = nanos(f.n & math.MaxInt64)
	case 9:
		t.TraceID = hex.EncodeToString(f.v)
	case 10:
		t.SpanID = hex.EncodeToString(f.v)
	case 11:
		t.ObservedTimeUnixNano = nanos(f.n & math.MaxInt64)
	}
	return t.Attributes.add(f, 6)
}

// span reads a field of Span: trace_id = 1, span_id = 2, end time = 8, attributes = 9.
func (t *telemetry) span(f field) error {
	switch f.number {
	case 1:
		t.TraceID = hex.EncodeToString(f.v)
	case 2:
		t.SpanID = hex.EncodeToString(f.v)
	case 8:
		t.EndTimeUnixNano = nanos(f.n & math.MaxInt64)
	}
	return t.Attributes.add(f, 9)
}

// add adds a KeyValue, key = 1, value = 2, if the field is of the number that attributes have.
func (as *attributes) add(f field, number protowire.Number) error {
	if f.number != number {
		return nil
	}
	var a attribute
	err := fields(f, heldAttribute, func(f field) error {
		switch f.number {
		case 1:
			a.Key = string(f.v)
		case 2:
			return a.Value.read(f, true)
		}
		return nil
	})
	*as = append(*as, a)
	return err
}

// read reads AnyValue: string = 1, bool = 2, int = 3, double = 4, array = 5 (values = 1). Arrays have no arrays.
func (v *anyValue) read(message field, arrays bool) error {
	return fields(message, heldValue, func(f field) error {
		switch f.number {
		case 1:
			s := string(f.v)
			v.StringValue = &s
		case 2:
			is := f.n != 0
			v.BoolValue = &is
		case 3:
			n := whole(f.n)
			v.IntValue = &n
		case 4:
			d := double(math.Float64frombits(f.n))
			v.DoubleValue = &d
		case 5:
			if !arrays {
				return nil
			}
			v.ArrayValue = &arrayValue{}
			return fields(f, 0, func(f field) error {
				if f.number != 1 {
					return nil
				}
				var item anyValue
				err := item.read(f, false)
				v.ArrayValue.Values = append(v.ArrayValue.Values, item)
				return err
			})
		}
		return nil
	})
}
