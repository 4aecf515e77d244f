package tracing

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

const producerState = "vendor=1,other@v=x:y"

func TestParse(t *testing.T) {
	c, sampled, ok := Parse(parent)
	if !ok || !sampled || c.String() != parent {
		t.Errorf("%s: %s, %v, %v", parent, c, sampled, ok)
	}
	for text, want := range map[string][2]bool{ // sampled, ok
		parent[:53] + "00":                                 {false, true},
		parent[:53] + "03":                                 {true, true},
		"cc" + parent[2:] + "-what-comes-later":            {true, true},
		"cc" + parent[2:] + "x":                            {false, false},
		parent + "-more":                                   {false, false},
		"ff" + parent[2:]:                                  {false, false},
		strings.ToUpper(parent):                            {false, false},
		parent[:3] + strings.Repeat("0", 32) + parent[35:]: {true, false},
		parent[:36] + strings.Repeat("0", 16) + "-01":      {true, false},
		parent[:54]:                                        {false, false},
		"":                                                 {false, false},
	} {
		if _, sampled, ok := Parse(text); ok != want[1] || ok && sampled != want[0] {
			t.Errorf("%q: sampled %v, ok %v, want %v", text, sampled, ok, want)
		}
	}
}

func TestWhoIsFollowed(t *testing.T) {
	now := time.Now()
	off := strings.TrimSuffix(parent, "1") + "0"
	all := &Tracer{Ratio: 1}
	if got := all.place([]Carrier{{Parent: off}}, now); got != nil {
		t.Errorf("the header says no, and the record is followed: %v", got)
	}
	if got := all.place([]Carrier{{Parent: "rubbish"}}, now); len(got) != 1 {
		t.Errorf("a header that is none: %v, want a trace of its own", got)
	}
	none := &Tracer{}
	if got := none.place(nil, now); got != nil {
		t.Errorf("a share of 0: %v", got)
	}
	if got := none.place([]Carrier{{Parent: parent}}, now); len(got) != 1 || got[0].String() != parent {
		t.Errorf("the header says yes: %v", got)
	}
	n := 0
	for range 10 * MaxPerSecond {
		n += len(all.place(nil, now))
	}
	if n != MaxPerSecond-1 || all.Over() != 9*MaxPerSecond+1 {
		t.Errorf("%d followed in a moment, %d over the limit", n, all.Over())
	}
	some := &Tracer{Ratio: .25}
	n = 0
	for i := range 4000 {
		n += len(some.place(nil, now.Add(time.Duration(i)*time.Second)))
	}
	if n < 850 || n > 1150 {
		t.Errorf("%d of 4000 are followed at a share of 1/4", n)
	}
}

// way follows one record through a lane and returns its spans.
func way(t *testing.T, steps func(l *Lane, m *Message)) (spans map[string]Span) {
	t.Helper()
	spans = map[string]Span{}
	l := NewLane(Settings{
		Tracer: &Tracer{Export: func(s Span) {
			if _, twice := spans[s.Name]; twice {
				t.Errorf("%s comes twice", s.Name)
			}
			if s.End.Before(s.Start) {
				t.Errorf("%s ends before it starts", s.Name)
			}
			spans[s.Name] = s
		}},
		Task:  "shard",
		Topic: func(stream string) string { return "t." + stream },
	})
	steps(l, &Message{Topic: "logits", Offset: 7, Time: time.Now().Add(-time.Second).UnixNano(),
		Parents: []Carrier{{parent, producerState}}})
	return spans
}

// checkParents checks which span is within which; "" = that of the producer.
func checkParents(t *testing.T, spans map[string]Span, want map[string]string) {
	t.Helper()
	producer, _, _ := Parse(parent)
	for name, under := range want {
		s, ok := spans[name]
		up := producer.Span
		if under != "" {
			up = spans[under].Span
		}
		if !ok || s.Parent != up || s.Trace != producer.Trace {
			t.Errorf("%s: %+v, want it within %q", name, s, under)
		}
	}
	if len(spans) != len(want) {
		t.Errorf("%d spans, want %d", len(spans), len(want))
	}
}

func TestWayOfABatch(t *testing.T) {
	pane, id := Pane{"m", 3}, [16]byte{1}
	var headers []Carrier
	spans := way(t, func(l *Lane, m *Message) {
		l.Begin(m)
		join := l.Stage("join")
		l.Await(id)
		stats := l.Stage("stats")
		l.Hold(pane)
		stats()
		join()
		l.Send("calibrated")
		l.End(m, nil)
		if l.On() || !l.Awaits() {
			t.Error("a record that was taken is at hand, or does not wait for its label")
		}
		cut := l.Checkpoint()
		cut.Wrote(time.Now(), nil, func(stream string) bool { return stream == "calibrated" })
		cut.Saved(1, nil)
		leave := l.Enter(pane)
		headers = l.Send("panes")
		leave()
		l.Enter(pane)() // nothing waits for it any more
		cut = l.Checkpoint()
		cut.Wrote(time.Now(), nil, func(string) bool { return true })
		cut.Saved(2, nil)
		l.Met(id, Pane{"m", 4})
	})
	checkParents(t, spans, map[string]string{
		"wait logits":         "",
		"process logits":      "wait logits",
		"join":                "process logits",
		"stats":               "join",
		"wait for checkpoint": "process logits",
		"save checkpoint":     "process logits",
		"send t.calibrated":   "process logits",
		"wait for pane":       "process logits",
		"send t.panes":        "wait for pane",
		"wait for label":      "process logits",
	})
	want := spans["send t.panes"].Context.Carry()
	if !slices.Equal(headers, []Carrier{want}) || want.State != producerState {
		t.Errorf("headers %v, want %v with the state of the producer", headers, want)
	}
	for name, s := range spans {
		if s.State != producerState {
			t.Errorf("%s has the tracestate %q, want %q", name, s.State, producerState)
		}
	}
}

// TestState: a tracestate is passed on as it came, or not at all; the place holds without it.
func TestState(t *testing.T) {
	long := strings.Repeat("v", maxState-2)
	for in, want := range map[string]string{"": "", "a=1,b@c=2": "a=1,b@c=2", "a= 1,\tb=2": "a= 1,\tb=2",
		"a=" + long: "a=" + long, "a=" + long + "v": "", "a=1\r\nb=2": "", "a=\xff": ""} {
		got := (&Tracer{}).place([]Carrier{{parent, in}}, time.Now())
		if len(got) != 1 || got[0].String() != parent || got[0].State != want {
			t.Errorf("tracestate %q: %+v, want %q", in, got, want)
		}
	}
}

// TestNoLane: without one nothing is followed and nothing fails.
func TestNoLane(t *testing.T) {
	var l *Lane
	l.Begin(&Message{})
	l.Stage("join")()
	l.Hold(Pane{})
	l.Enter(Pane{})()
	l.Set("a", "b")
	l.End(&Message{}, nil)
	c := l.Checkpoint()
	c.Wrote(time.Now(), nil, nil)
	c.Saved(1, nil)
	if l.On() || l.Awaits() || l.Send("panes") != nil {
		t.Error("no lane follows a record")
	}
}

// TestWhatWaitsIsBounded: traces whose panes never come are forgotten, the oldest first.
func TestWhatWaitsIsBounded(t *testing.T) {
	var w waiting[Pane]
	now := time.Now()
	for i := range 3 * maxHeld {
		w.add(Pane{Index: int64(i)}, &branch{}, now.Add(time.Duration(i)))
	}
	if len(w) != maxHeld || w.take(Pane{Index: 2*maxHeld - 1}) != nil || w.take(Pane{Index: 2 * maxHeld}) == nil {
		t.Errorf("%d wait, want the newest %d", len(w), maxHeld)
	}
	for range 3 * maxTogether {
		w.add(Pane{Model: "m"}, &branch{}, now)
	}
	if n := len(w.take(Pane{Model: "m"})); n != maxTogether {
		t.Errorf("%d wait for a pane, want %d", n, maxTogether)
	}
}

// BenchmarkLane is what a record costs a task, with and without a tracer.
func BenchmarkLane(b *testing.B) {
	for name, l := range map[string]*Lane{
		"none": nil,
		"off":  NewLane(Settings{}),
		"0.01": NewLane(Settings{Tracer: &Tracer{Ratio: .01, Export: func(Span) {}}}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			m := &Message{Topic: "logits", Time: 1}
			for range b.N {
				l.Begin(m)
				l.Stage("join")()
				l.End(m, nil)
				l.Checkpoint()
			}
		})
	}
}
