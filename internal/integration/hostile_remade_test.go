//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/feed"
)

func init() {
	hostile["epoch-remade-live"] = remadeLive
	hostile["epoch-remade-unkeyed"] = remadeUnkeyed
}

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
	a.Lag, a.RSS = time.Since(began).Round(100*time.Millisecond).String(), p.peak()
	p.stop()
	got := w.day()
	a.Exact = sc.same(t, got, want)
	sc.told(t, w, got)
}

// remadeUnkeyed deletes topics that are split and makes them again: the repartition stage reads the new ones from their
// start, and no shard takes what it makes of them for repeats.
func remadeUnkeyed(t *testing.T, a *attack) {
	a.Input = "unkeyed topics are deleted and made again"
	a.Before = "after the reset all of the new topics' first messages were dropped as repeats"
	s := configureSplit(t, oneDay+"models: [{name: m, classes: 10}]\n")
	all := repartitionFeed(t, 1)
	half := len(all) / 2
	var rows [2]int64
	for _, m := range all[:half] {
		rows[m.Stream] += int64(m.Rows)
	}
	send := func(ms []feed.Message) { writeFeed(t, s, ms, anywhere(partitions)) }
	send(all[:half])
	p := run(t, s)
	p.drain(rows[0], rows[1])
	p.stop()
	w := &epochWorld{t: t, s: s}
	w.remake("logits", "labels")
	send(all[half:])
	sc := lostState{says: "deleted and made again"}
	sc.refused(t, w)
	runOK(t, "state", "reset", "-c", s.file, "--task", "all", "--by", "ann", "--why", "a test", "--accept-loss")
	began := time.Now()
	p = run(t, s)
	st := p.drain(repartitionRows, repartitionRows)
	a.Lag, a.RSS = time.Since(began).Round(100*time.Millisecond).String(), p.peak()
	a.Exact = st.Counts.Predictions == repartitionRows && st.Counts.Labels == repartitionRows &&
		st.Counts.Joined == repartitionRows && st.Counts.Duplicates == 0
	if !a.Exact {
		t.Errorf("counts %+v, want %d each", st.Counts, repartitionRows)
	}
	p.stop()
}
