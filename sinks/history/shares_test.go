package history

import (
	"fmt"
	"testing"
)

// TestTaskMovesAndReturns: what belongs to the models of a task that another process has is not current here, and is
// again when the task is back with what it remembers.
func TestTaskMovesAndReturns(t *testing.T) {
	h := New(Config{AlertsPerModel: 2})
	h.Share(func(model string) int { return map[string]int{"m": 1}[model] })
	h.AddSnapshot(rowsSnap(1))
	for i, rule := range []string{"a", "b", "c"} { // the ring has forgotten a
		h.AddAlert(alert(i+1, rule, "firing"))
	}
	here := func(want string, moved bool) {
		t.Helper()
		got := ""
		for _, a := range h.CurrentAlerts("", "") {
			got += a.Rule
		}
		if got != want || h.Series()[0].Moved != moved {
			t.Errorf("current: %q, moved: %v; want %q, %v", got, h.Series()[0].Moved, want, moved)
		}
	}
	h.Leave(0)
	here("abc", false)
	h.Leave(1)
	here("", true)
	h.AddSnapshot(rowsSnap(2)) // of a restore that goes on in the background
	h.Leave(1)
	here("", true)
	if got := h.Alerts("m", "1", 0); len(got) != 2 {
		t.Errorf("%d changes are kept, want 2: they have happened", len(got))
	}
	before := fmt.Sprint(h.Position())
	h.AddAlert(alert(1, "a", "firing")) // as the task remembers it
	h.AddAlert(alert(9, "b", "resolved"))
	h.AddAlert(alert(3, "c", "firing"))
	if !h.Return(1) || h.Return(1) {
		t.Error("the history lacks what has happened elsewhere, and nothing when the task begins again")
	}
	here("ac", false)
	h.Leave(1)
	if !h.Return(1) {
		t.Error("the task was away again")
	}
	if after := fmt.Sprint(h.Position()); after == before {
		t.Error("what has happened elsewhere is no event")
	}
}

// TestRepeatIsNoNewState: a change that comes again after its rule has changed once more does not bring it back.
func TestRepeatIsNoNewState(t *testing.T) {
	h := New(Config{AlertsPerModel: 8})
	for range 2 {
		h.AddAlert(alert(1, "a", "pending"))
		h.AddAlert(alert(1, "a", "firing")) // of the same pane
		h.AddAlert(alert(2, "b", "firing"))
		h.AddAlert(alert(3, "b", "resolved"))
		h.AddAlert(alert(1, "a", "pending"))
		h.AddAlert(alert(2, "b", "firing"))
	}
	got := h.CurrentAlerts("", "")
	if len(got) != 1 || got[0].Rule != "a" || got[0].State != "firing" {
		t.Errorf("current: %+v, want a firing", got)
	}
}
