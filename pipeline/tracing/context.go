package tracing

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
)

// Record headers of W3C Trace Context: the place in a trace, and what its tracers note about it.
const (
	Header      = "traceparent"
	StateHeader = "tracestate"
)

// maxState is the longest tracestate that is passed on, in bytes; W3C wants 512 at least.
const maxState = 512

// TraceID names a trace.
type TraceID [16]byte

func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// SpanID names a span of a trace; zero: none.
type SpanID [8]byte

// Context is a place in a trace.
type Context struct {
	Trace TraceID
	Span  SpanID
	State string // tracestate, as it came; "" = none
}

// Carrier is a place in a trace as headers have it.
type Carrier struct {
	Parent, State string
}

// contextLen is the length of a context as text.
const contextLen = 55

// Carry is the context as headers have it.
func (c Context) Carry() Carrier { return Carrier{c.String(), c.State} }

// String is the context as [Header] has it, sampled.
func (c Context) String() string {
	return "00-" + c.Trace.String() + "-" + hex.EncodeToString(c.Span[:]) + "-01"
}

// Parse reads a header. ok is false where it is none: such a record is treated as one without the header.
func Parse(s string) (c Context, sampled, ok bool) {
	if len(s) < contextLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return c, false, false
	}
	version, okVersion := lowerHex(s[:2])
	trace, okTrace := lowerHex(s[3:35])
	span, okSpan := lowerHex(s[36:52])
	flags, okFlags := lowerHex(s[53:55])
	switch {
	case !okVersion || !okTrace || !okSpan || !okFlags || version[0] == 0xff:
		return c, false, false
	case version[0] == 0 && len(s) > contextLen, len(s) > contextLen && s[contextLen] != '-':
		return c, false, false
	}
	c = Context{Trace: TraceID(trace), Span: SpanID(span)}
	return c, flags[0]&1 != 0, c.Trace != TraceID{} && c.Span != SpanID{}
}

// carried is the key of a header in a context.
type carried struct{}

// WithCarrier returns ctx with headers that did not come with a record; those that name no place are left out.
func WithCarrier(ctx context.Context, c Carrier) context.Context {
	if _, _, ok := Parse(c.Parent); !ok {
		return ctx
	}
	return context.WithValue(ctx, carried{}, c)
}

// CarrierOf is what ctx carries; ok is false where it is nothing.
func CarrierOf(ctx context.Context) (c Carrier, ok bool) {
	c, ok = ctx.Value(carried{}).(Carrier)
	return c, ok
}

// state is a tracestate that may be passed on: one line of printable ASCII that is not too long.
func state(s string) string {
	if len(s) > maxState {
		return ""
	}
	for _, c := range []byte(s) {
		if (c < ' ' || c > '~') && c != '\t' {
			return ""
		}
	}
	return s
}

func lowerHex(s string) ([]byte, bool) {
	for _, c := range []byte(s) {
		if c >= 'A' && c <= 'F' {
			return nil, false
		}
	}
	b, err := hex.DecodeString(s)
	return b, err == nil
}

// Ids decide nothing and are no secrets, so they need no seed and no strong randomness.
func newTrace() (t TraceID) {
	random(t[:])
	return t
}

func newSpan() (s SpanID) {
	random(s[:])
	return s
}

func random(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	b[0] |= 1 // never all zero
}
