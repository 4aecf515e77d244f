package tracing

import (
	"time"
)

// Steps of the latencies that are observed.
const (
	StepWait    = "wait"    // from a record's timestamp until a task takes it
	StepProcess = "process" // while the task takes it
	StepSave    = "save"    // from the copy of a checkpoint until everything of it is durable
	StepTotal   = "total"   // from the timestamp of the oldest record of a checkpoint until then
)

// Observe takes a latency, with the trace of a record that had it; "" = none is followed.
type Observe = func(d time.Duration, trace string)

// Settings are those of a lane.
type Settings struct {
	Tracer  *Tracer                         // nil: no record is followed
	Observe func(task, step string) Observe // nil: nobody wants latencies
	Task    string                          // kind of the task
	Group   string                          // its consumer group
	// Topic is where a stream goes; "" = nowhere.
	Topic func(stream string) string
}

// Lane follows the records of one task. Its goroutine alone calls it.
type Lane struct {
	Settings
	active  []*branch // of the record or pane at hand, one for each trace
	began   time.Time
	oldest  int64    // timestamp of the oldest record since the last cut; 0 = none
	ended   []ending // records taken since the last cut
	sends   []*send  // outputs made since the last cut
	panes   waiting[Pane]
	waiters waiting[[16]byte]

	wait, process, save, total Observe
}

// Message is a record as the lane sees it.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      int64 // Unix nanoseconds; 0 = none
	Bytes     int
	Parents   []Carrier // its headers
}

// branch is a record's way in one trace.
type branch struct {
	trace   TraceID
	state   string   // tracestate
	process SpanID   // the span of the record
	stack   []SpanID // open spans
	spans   int      // made so far
	attrs   []Attr   // of the span of the record
	parent  SpanID
	sent    map[string]*send // by stream
}

// at is a span of the branch.
func (b *branch) at(s SpanID) Context { return Context{b.trace, s, b.state} }

// ending is a record that was taken, in one trace.
type ending struct {
	*branch
	at time.Time
}

// send is the span of an output that is not written yet.
type send struct {
	Context
	parent SpanID
	stream string
}

// NewLane returns a lane.
func NewLane(s Settings) *Lane {
	if s.Observe == nil {
		s.Observe = func(string, string) Observe { return func(time.Duration, string) {} }
	}
	of := func(step string) Observe { return s.Observe(s.Task, step) }
	return &Lane{Settings: s, wait: of(StepWait), process: of(StepProcess), save: of(StepSave), total: of(StepTotal)}
}

// On reports whether the record or pane at hand is followed.
func (l *Lane) On() bool { return l != nil && len(l.active) > 0 }

// Begin says that a record is taken from here on.
func (l *Lane) Begin(m *Message) {
	if l == nil {
		return
	}
	l.began = time.Now()
	if m.Time > 0 && (l.oldest == 0 || m.Time < l.oldest) {
		l.oldest = m.Time
	}
	l.active = l.active[:0]
	for _, at := range l.Tracer.place(m.Parents, l.began) {
		l.follow(m, at)
	}
	if m.Time > 0 {
		l.wait(max(0, time.Duration(l.began.UnixNano()-m.Time)), l.trace())
	}
}

// follow begins the spans of a record: its wait in the log, and the work of the task.
func (l *Lane) follow(m *Message, at Context) {
	b := &branch{trace: at.Trace, state: at.State, process: newSpan(), parent: at.Span}
	b.attrs = []Attr{
		{"messaging.system", "kafka"},
		{"messaging.destination.name", m.Topic},
		{"messaging.destination.partition.id", decimal(int64(m.Partition))},
		{"messaging.kafka.offset", m.Offset},
		{"messaging.consumer.group.name", l.Group},
		{"messaging.message.body.size", int64(m.Bytes)},
	}
	if m.Time > 0 && m.Time <= l.began.UnixNano() {
		b.parent = newSpan()
		appended := time.Unix(0, m.Time)
		l.Tracer.Export(Span{Context: b.at(b.parent), Parent: at.Span, Name: "wait " + m.Topic,
			Kind: Internal, Start: appended, End: l.began, Attrs: b.attrs[:4:4]})
	}
	b.attrs = append(b.attrs, Attr{"messaging.operation.type", "process"}, Attr{"messaging.operation.name", "process"},
		Attr{"plumbline.task", l.Task})
	b.stack = []SpanID{b.process}
	l.active = append(l.active, b)
}

// End says that the record was taken, or that err ended the task.
func (l *Lane) End(m *Message, err error) {
	if l == nil {
		return
	}
	now := time.Now()
	l.process(max(0, now.Sub(l.began)), l.trace())
	for _, b := range l.active {
		l.ended = append(l.ended, ending{b, now})
		s := Span{Context: b.at(b.process), Parent: b.parent, Name: "process " + m.Topic, Kind: Consumer,
			Start: l.began, End: now, Attrs: b.attrs}
		if err != nil {
			s.Err = err.Error()
		}
		l.Tracer.Export(s)
	}
	l.active = nil
}

// Set adds an attribute to the span of the record at hand.
func (l *Lane) Set(key string, value any) {
	if !l.On() {
		return
	}
	for _, b := range l.active {
		b.attrs = append(b.attrs, Attr{key, value})
	}
}

// Stage begins a span within the one at hand.
func (l *Lane) Stage(name string, attrs ...Attr) (end func()) {
	if !l.On() {
		return func() {}
	}
	start, in := time.Now(), l.active
	ids := make([]SpanID, len(in))
	for i, b := range in {
		ids[i] = newSpan()
		b.stack = append(b.stack, ids[i])
	}
	return func() {
		now := time.Now()
		for i, b := range in {
			b.stack = b.stack[:len(b.stack)-1]
			if b.spans++; b.spans <= maxSpans {
				l.Tracer.Export(Span{Context: b.at(ids[i]), Parent: b.stack[len(b.stack)-1], Name: name,
					Kind: Internal, Start: start, End: now, Attrs: attrs})
			}
		}
	}
}

// Send names, for the headers of an output that is made of what is at hand, the spans of its writing: one for each
// trace, and the same for all outputs of a stream.
func (l *Lane) Send(stream string) (headers []Carrier) {
	if !l.On() {
		return nil
	}
	for _, b := range l.active {
		s := b.sent[stream]
		if s == nil {
			s = &send{b.at(newSpan()), b.stack[len(b.stack)-1], stream}
			if b.sent == nil {
				b.sent = map[string]*send{}
			}
			b.sent[stream] = s
			l.sends = append(l.sends, s)
		}
		headers = append(headers, s.Carry())
	}
	return headers
}

// trace is one of those at hand; "" = none.
func (l *Lane) trace() string {
	if len(l.active) == 0 {
		return ""
	}
	return l.active[0].trace.String()
}
