package tracing

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
)

// Header is the record header with the place in a trace (W3C Trace Context).
const Header = "traceparent"

// TraceID names a trace.
type TraceID [16]byte

func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// SpanID names a span of a trace; zero: none.
type SpanID [8]byte

// Context is a place in a trace.
type Context struct {
	Trace TraceID
	Span  SpanID
}

// contextLen is the length of a context as text.
const contextLen = 55

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
	c = Context{TraceID(trace), SpanID(span)}
	return c, flags[0]&1 != 0, c.Trace != TraceID{} && c.Span != SpanID{}
}

// carried is the key of a header in a context.
type carried struct{}

// WithHeader returns ctx with a header that did not come with a record; one that is none is left out.
func WithHeader(ctx context.Context, header string) context.Context {
	if _, _, ok := Parse(header); !ok {
		return ctx
	}
	return context.WithValue(ctx, carried{}, header)
}

// HeaderOf is the header in ctx; "" = none.
func HeaderOf(ctx context.Context) string {
	header, _ := ctx.Value(carried{}).(string)
	return header
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
