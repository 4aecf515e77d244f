package history

import (
	"errors"
	"fmt"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// slicedSnap is snapshot i of a slice.
func slicedSnap(slice, i int) record.Snapshot {
	s := rowsSnap(i)
	s.Slice = fmt.Sprintf("tenant=%04d", slice)
	return s
}

// waiting takes what waits for a subscriber, in words.
func waiting(s *Subscription) (out []string) {
	for e, ok := s.Next(); ok; e, ok = s.Next() {
		switch r := e.Record.(type) {
		case *record.Snapshot:
			out = append(out, fmt.Sprintf("%s %d", r.Slice, r.Labelled))
		case *record.Alert:
			out = append(out, r.Rule)
		}
	}
	return out
}

func TestSlowSubscriber(t *testing.T) {
	alerts := func(n int) func(*History) {
		return func(h *History) {
			for i := range n {
				h.AddAlert(alert(i+1, fmt.Sprint("rule", i+1), "firing"))
			}
		}
	}
	for _, c := range []struct {
		name    string
		wants   func(Event) bool
		add     func(*History)
		want    []string
		dropped uint64
	}{
		{"what fits is all there", nil, func(h *History) {
			for i := 1; i <= 4; i++ {
				h.AddSnapshot(slicedSnap(1, i))
			}
		}, []string{"tenant=0001 1", "tenant=0001 2", "tenant=0001 3", "tenant=0001 4"}, 0},
		{"then a snapshot replaces that of its series", nil, func(h *History) {
			h.AddSnapshot(slicedSnap(1, 1))
			alerts(2)(h)
			for i := 1; i <= 7; i++ {
				h.AddSnapshot(slicedSnap(2, i))
			}
		}, []string{"tenant=0001 1", "rule1", "rule2", "tenant=0002 7"}, 0},
		{"but none of before", nil, func(h *History) {
			h.AddSnapshot(slicedSnap(1, 9))
			alerts(3)(h)
			for i := 2; i <= 7; i++ {
				old := slicedSnap(1, i)
				h.AddPast(&old)
			}
		}, []string{"tenant=0001 9", "rule1", "rule2", "rule3"}, 0},
		{"one of another series replaces none", nil, func(h *History) {
			alerts(4)(h)
			h.AddSnapshot(slicedSnap(1, 1))
			h.AddSnapshot(slicedSnap(2, 1))
		}, []string{"rule1", "rule2", "rule3", "rule4", "tenant=0001 1", "tenant=0002 1"}, 0},
		{"what nobody wants takes no room", func(e Event) bool { return e.Type == "alert" }, func(h *History) {
			for i := range 100 {
				h.AddSnapshot(slicedSnap(i, 1))
			}
			alerts(3)(h)
		}, []string{"rule1", "rule2", "rule3"}, 0},
		{"there is an end", nil, alerts(4 + 6 + 1), nil, 1},
	} {
		h := New(Config{SubscriberBuffer: 4, Keys: 6})
		s, err := h.Subscribe("", 0, c.wants)
		if err != nil {
			t.Fatal(err)
		}
		c.add(h)
		if got := h.Totals().DroppedSubscribers; got != c.dropped {
			t.Errorf("%s: %d subscribers dropped, want %d", c.name, got, c.dropped)
		}
		if c.dropped > 0 {
			<-s.Wake
			if _, open := <-s.Wake; open {
				t.Errorf("%s: it is not told", c.name)
			}
			continue
		}
		if got := waiting(s); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if _, seq := h.Position(); s.Passed() != seq {
			t.Errorf("%s: passed %d of %d", c.name, s.Passed(), seq)
		}
	}
}

// TestBurstOfSlices: panes of a model with thousands of slices reach a subscriber that reads nothing meanwhile.
func TestBurstOfSlices(t *testing.T) {
	const slices, panes = 3000, 4
	h := New(Config{})
	all, _ := h.Subscribe("", 0, nil)
	one, _ := h.Subscribe("", 0, func(e Event) bool {
		s, ok := e.Record.(*record.Snapshot)
		return !ok || s.Slice == "tenant=0007"
	})
	for i := 1; i <= panes; i++ {
		for s := range slices {
			h.AddSnapshot(slicedSnap(s, i))
		}
		h.AddAlert(alert(i, "r", "firing"))
	}
	last := map[string]bool{}
	alerts := 0
	for _, e := range waiting(all) {
		last[e] = true
		if e == "r" {
			alerts++
		}
	}
	for s := range slices {
		if !last[fmt.Sprintf("tenant=%04d %d", s, panes)] {
			t.Fatalf("the newest snapshot of slice %d is missing", s)
		}
	}
	if alerts != panes {
		t.Errorf("got %d alerts, want %d", alerts, panes)
	}
	if got := len(waiting(one)); got != 2*panes {
		t.Errorf("one slice: got %d events, want the snapshots and alerts of %d panes", got, panes)
	}
	if n := h.Totals().DroppedSubscribers; n != 0 {
		t.Errorf("%d subscribers dropped", n)
	}
}

func TestSubscribers(t *testing.T) {
	h := New(Config{Subscribers: 2})
	first, _ := h.Subscribe("", 0, nil)
	if _, err := h.Subscribe("", 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Subscribe("", 0, nil); !errors.Is(err, ErrTooManySubscribers) {
		t.Fatalf("third of two subscribers: got %v", err)
	}
	first.Close()
	first.Close()
	if _, open := <-first.Wake; open {
		t.Error("a closed subscription is not told")
	}
	again, err := h.Subscribe("", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.AddSnapshot(rowsSnap(1))
	<-again.Wake
	if got := again.Passed(); got != 0 {
		t.Errorf("passed %d, want 0: an event waits", got)
	}
	if e, ok := again.Next(); !ok || e.Seq != 1 {
		t.Errorf("got %+v, %v; want event 1", e, ok)
	}
}
