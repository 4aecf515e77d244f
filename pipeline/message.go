package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Message is one output record.
type Message struct {
	Stream    Stream
	Partition int32 // -1 = by key, as Kafka's default partitioner does
	Key       []byte
	Value     []byte
	Headers   []Header
	Time      Time
	// Record is the decoded form of Value, a pointer to a type of package record, for readers in this process. It is
	// read-only, and nil for messages without such a form.
	Record any
}

// Size is about how many bytes of memory and of the log a message takes.
func (m *Message) Size() int {
	const fixed, header = 256, 48
	n := fixed + len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += header + len(m.Headers[i].Key) + len(m.Headers[i].Value)
	}
	return n
}

// NewMessage encodes a record as an output message. Neither the record nor anything it points to may change
// afterwards.
func NewMessage(s Stream, key string, at Time, rec any) (Message, error) {
	value, err := json.Marshal(rec)
	if err != nil {
		return Message{}, fmt.Errorf("%T of %s: %w", rec, key, err)
	}
	return Message{Stream: s, Partition: -1, Key: []byte(key), Value: value, Time: at, Record: rec}, nil
}

// followed describes a record to the tracer.
func followed(r *Record) tracing.Message {
	m := tracing.Message{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time, Bytes: len(r.Value)}
	m.Parents = carriers(r.Headers)
	return m
}

// TraceOf returns those of the headers that are a trace context.
func TraceOf(headers []Header) (out []Header) {
	for _, h := range headers {
		if isTrace(h) {
			out = append(out, h)
		}
	}
	return out
}

func isTrace(h Header) bool { return h.Key == tracing.Header || h.Key == tracing.StateHeader }

// carriers returns the trace contexts in headers. If there are several, a tracestate belongs to the traceparent before
// it.
func carriers(headers []Header) (out []tracing.Carrier) {
	first := ""
	for _, h := range headers {
		switch {
		case h.Key == tracing.Header:
			out = append(out, tracing.Carrier{Parent: string(h.Value), State: first})
			first = ""
		case h.Key != tracing.StateHeader:
		case len(out) > 0:
			out[len(out)-1].State = string(h.Value)
		default:
			first = string(h.Value)
		}
	}
	return out
}

// TraceHeaders returns the headers that carry a trace context.
func TraceHeaders(c tracing.Carrier) []Header {
	out := []Header{{tracing.Header, []byte(c.Parent)}}
	if c.State != "" {
		out = append(out, Header{tracing.StateHeader, []byte(c.State)})
	}
	return out
}

// CarryTrace adds the current trace context to an output's headers, which are part of no state and no hash.
func CarryTrace(l *tracing.Lane, m *Message) {
	if !l.On() {
		return
	}
	m.Headers = slices.DeleteFunc(m.Headers, isTrace)
	for _, place := range l.Send(string(m.Stream)) {
		m.Headers = append(m.Headers, TraceHeaders(place)...)
	}
}
