package tracing

import (
	"strconv"
	"time"
)

// Pane is a label pane of a model.
type Pane struct {
	Model string
	Index int64
}

// waiting are records that wait for something, by what they wait for.
type waiting[K comparable] map[K][]held

type held struct {
	*branch
	since time.Time
}

// add notes that b waits for k. Where too many wait, those that wait longest are forgotten.
func (w *waiting[K]) add(k K, b *branch, now time.Time) {
	for _, h := range (*w)[k] {
		if h.branch == b {
			return
		}
	}
	if *w == nil {
		*w = waiting[K]{}
	}
	if len((*w)[k]) >= maxTogether {
		return
	}
	if len(*w) >= maxHeld && (*w)[k] == nil {
		w.forget()
	}
	(*w)[k] = append((*w)[k], held{b, now})
}

func (w *waiting[K]) forget() {
	var oldest K
	var since time.Time
	for k, hs := range *w {
		if since.IsZero() || hs[0].since.Before(since) {
			oldest, since = k, hs[0].since
		}
	}
	delete(*w, oldest)
}

// take returns what waits for k, and forgets it.
func (w *waiting[K]) take(k K) []held {
	hs := (*w)[k]
	delete(*w, k)
	return hs
}

// Hold says that what is at hand is in a pane.
func (l *Lane) Hold(p Pane) {
	if !l.On() {
		return
	}
	now := time.Now()
	for _, b := range l.active {
		l.panes.add(p, b, now)
	}
}

// Enter continues with the records of a pane, which is complete: what waited for it ends its wait. leave returns to
// what was at hand.
func (l *Lane) Enter(p Pane) (leave func()) {
	if l == nil || len(l.panes) == 0 {
		return func() {}
	}
	hs := l.panes.take(p)
	if len(hs) == 0 {
		return func() {}
	}
	outer, now := l.active, time.Now()
	l.active = nil
	for _, h := range hs {
		wait := h.at(newSpan())
		l.Tracer.Export(Span{Context: wait, Parent: h.process, Name: "wait for pane", Kind: Internal, Start: h.since,
			End: now, Attrs: []Attr{{"plumbline.model", p.Model}, {"plumbline.task", l.Task}}})
		l.active = append(l.active, branchAt(wait))
	}
	return func() { l.active = outer }
}

// Await says that what is at hand waits for the label of an id.
func (l *Lane) Await(id [16]byte) {
	if !l.On() {
		return
	}
	for _, b := range l.active {
		l.waiters.add(id, b, l.began)
	}
}

// Awaits reports whether a record waits for the label of some id.
func (l *Lane) Awaits() bool { return l != nil && len(l.waiters) > 0 }

// Met says that an id has its label, in a pane: the record that brought the id is in the pane too.
func (l *Lane) Met(id [16]byte, p Pane) {
	hs := l.waiters.take(id)
	if len(hs) == 0 {
		return
	}
	now := time.Now()
	for _, h := range hs {
		at := h.at(newSpan())
		l.Tracer.Export(Span{Context: at, Parent: h.process, Name: "wait for label", Kind: Internal, Start: h.since,
			End: now, Attrs: []Attr{{"plumbline.model", p.Model}}})
		l.panes.add(p, branchAt(at), now)
	}
}

// branchAt goes on from a span.
func branchAt(c Context) *branch {
	return &branch{trace: c.Trace, state: c.State, process: c.Span, stack: []SpanID{c.Span}}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
