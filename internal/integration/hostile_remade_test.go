//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"
)

func init() { hostile["epoch-remade-live"] = remadeLive }

// remadeLive deletes topics and makes them again under a process that reads them, and makes them longer than they were
// before it can notice: no state has what it read of the new ones, so a reset counts them once, from their beginning.
func remadeLive(t *testing.T, a *attack) {
	sc := lostState{task: "all", says: "deleted and made again", first: true, second: true, waited: true, lost: true}
	a.Input = "logits and labels are deleted, made again and longer than they were, under a process that reads them"
	a.Before = "for up to 10 s rows of the new topics came into the state: a reset counted them twice"
	want := sc.reference(t)
	w := newEpochWorld(t, "directory")
	p := run(t, w.s)
	w.send(0, false, 0)
	w.drained(p, start.Add(epochPart/2))
	w.remake("logits", "labels")
	w.send(1, true, 0)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		t.Fatal("the process goes on")
	}
	if log := string(p.tail()); !strings.Contains(log, sc.says) || !strings.Contains(log, "plumbline state reset") {
		t.Errorf("the log does not say %q and name the command", sc.says)
	}
	runOK(t, "state", "reset", "-c", w.s.file, "--task", sc.task, "--by", "ann", "--why", "a test", "--accept-loss")
	began := time.Now()
	p = run(t, w.s)
	w.drained(p, start.Add(2*epochPart))
	a.Lag = time.Since(began).Round(100 * time.Millisecond).String()
	p.stop()
	got := w.day()
	a.Exact = sc.same(t, got, want)
	sc.told(t, w, got)
}
