package tracing

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a span is to others, in the numbers of OTLP.
type Kind int

// The kinds of spans.
const (
	Internal Kind = 1
	Producer Kind = 4
	Consumer Kind = 5
)

// Attr is an attribute of a span; the value is a string or an int64.
type Attr struct {
	Key   string
	Value any
}

// Span is a step of a record's way that has ended.
type Span struct {
	Context
	Parent     SpanID // zero: the first of its trace
	Name       string
	Kind       Kind
	Start, End time.Time
	Attrs      []Attr
	Err        string // "" = it went well
}

// Bounds of what is followed.
const (
	// MaxPerSecond is how many records a process begins to follow in a second, whatever their headers ask for.
	MaxPerSecond = 100
	// maxTogether is how many traces a pane carries on.
	maxTogether = 8
	// maxHeld is how many panes, and how many predictions, of a task have traces that wait.
	maxHeld = 1024
	// maxSpans is how many spans of a record a task makes: a record can become many batches.
	maxSpans = 64
)

// Tracer decides which records are followed. It is shared by the tasks of a process.
type Tracer struct {
	// Ratio is the share of the records without a header that are followed. With a header its flag decides.
	Ratio float64
	// Export takes a span. It must not block.
	Export func(Span)

	over    atomic.Int64
	mu      sync.Mutex
	tokens  float64
	counted time.Time
}

// Over is how many records were not followed because of MaxPerSecond.
func (t *Tracer) Over() int64 { return t.over.Load() }

// place returns where the spans of a record hang, one for each trace that it is followed in.
func (t *Tracer) place(parents []Carrier, now time.Time) (out []Context) {
	if t == nil {
		return nil
	}
	given := false
	for _, p := range parents {
		c, sampled, ok := Parse(p.Parent)
		c.State = state(p.State)
		given = given || ok
		if ok && sampled && len(out) < maxTogether {
			out = append(out, c)
		}
	}
	if !given && t.Ratio > 0 && rand.Float64() < t.Ratio {
		out = append(out, Context{Trace: newTrace()})
	}
	if len(out) > 0 && !t.room(now) {
		t.over.Add(1)
		return nil
	}
	return out
}

// room reports whether one more record may be followed.
func (t *Tracer) room(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counted.IsZero() {
		t.tokens = MaxPerSecond
	} else {
		t.tokens = min(MaxPerSecond, t.tokens+MaxPerSecond*now.Sub(t.counted).Seconds())
	}
	t.counted = now
	if t.tokens < 1 {
		return false
	}
	t.tokens--
	return true
}
