//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

func init() {
	hostile["epoch-remade-live"] = remadeLive
	hostile["epoch-remade-unkeyed"] = remadeUnkeyed
	hostile["epoch-remade-input"] = remadeInput
	hostile["epoch-retention-unkeyed"] = retentionUnkeyed
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

// retentionUnkeyed removes what the repartition stage has not read: it goes on at a person's order, every other row
// counts once, and the loss is told.
func retentionUnkeyed(t *testing.T, a *attack) {
	a.Input = "retention passes the committed offsets of unkeyed topics"
	a.Before = "the stage failed for ever, and no command let it go on"
	s := configureSplit(t, oneDay+"models: [{name: m, classes: 10}]\n")
	all := repartitionFeed(t, 1)
	third := len(all) / 3
	send := func(ms []feed.Message) { writeFeed(t, s, ms, anywhere(partitions)) }
	rows := func(ms []feed.Message) (n [2]int64) {
		for _, m := range ms {
			n[m.Stream] += int64(m.Rows)
		}
		return n
	}
	w := &epochWorld{t: t, s: s, model: "m"}
	send(all[:third])
	p := run(t, s)
	was := rows(all[:third])
	p.drain(was[0], was[1])
	p.stop()
	send(all[third : 2*third])
	w.forget(true)
	sc := lostState{says: "is not in the log", lost: true}
	sc.refused(t, w)
	order := func(task string) (out string) {
		within(t, time.Minute, "the end of the groups' members", func() error {
			b, err := exec.Command(binary, "state", "reset", "-c", s.file, "--task", task, "--by", "ann", "--why",
				"a test", "--accept-loss").CombinedOutput()
			if out = string(b); err != nil {
				err = fmt.Errorf("%w: %s", err, b)
			}
			return err
		})
		return out
	}
	first := order("repartition-logits/1")
	if !strings.Contains(first, "offsets before it are gone unread") {
		t.Errorf("the order says:\n%s", first)
	}
	if rest := order("all"); strings.Contains(rest, "repartition-logits/1: move") ||
		!strings.Contains(rest, "repartition-labels/1: move") {
		t.Errorf("the order says:\n%s", rest)
	}
	send(all[2*third:])
	began := time.Now()
	p = run(t, s)
	is := rows(all[2*third:])
	st := p.drain(was[0]+is[0], was[1]+is[1])
	a.Lag, a.RSS = time.Since(began).Round(100*time.Millisecond).String(), p.peak()
	a.Exact = st.Counts.Predictions == was[0]+is[0] && st.Counts.Labels == was[1]+is[1] && st.Counts.Duplicates == 0
	if !a.Exact {
		t.Errorf("counts %+v, want %d predictions and %d labels", st.Counts, was[0]+is[0], was[1]+is[1])
	}
	p.stop()
	got := w.day()
	sc.told(t, w, got)
	if got.Lost != nil && !strings.Contains(strings.Join(got.Lost.Tasks, ", "), "repartition-logits/1, ") {
		t.Errorf("the snapshot names %q", got.Lost.Tasks)
	}
}

// remadeInput deletes a topic of inputs under a process that reads it and makes it again, in one partition longer than
// it was: every row of both topics counts once, before a restart and after it; also where topics.logits names it.
func remadeInput(t *testing.T, a *attack) {
	topic := topicPrefix(t) + ".rows"
	remadeInputOf(t, a, topic, "  logits: ", "  logits: "+topic+" # ")
	remadeInputOf(t, a, topicPrefix(t)+".rows")
}

func remadeInputOf(t *testing.T, a *attack, topic string, edits ...string) {
	const was, more = 500, 700
	a.Input = "a topic of inputs is deleted, made again and longer than it was, under a process that reads it"
	a.Before = "231 of 700 rows were not read; after a restart 469 counted twice"
	s := configureEdited(t, oneDay+"models: [{name: m, classes: 2}]\ninputs:\n-\n  topic: "+topic+"\n  model: m\n",
		append(edits, "idle_timeout: 0s", "idle_timeout: 2s")...)
	send := func(from, n, partitions int) {
		ms := make([]kafka.Message, n)
		for i := range ms {
			at := start.Add(time.Duration(from+i) * time.Second)
			ms[i] = kafka.Message{Topic: topic, Partition: i % partitions, Time: at, Value: fmt.Appendf(nil,
				`{"id": "r%d", "ts": %d, "logits": [0, %d], "label": %d}`, from+i, at.Unix(), i%10, i%2)}
		}
		kafkatest.Write(t, brokers, ms...)
	}
	p := run(t, s)
	send(0, was, partitions)
	p.drain(was, 0)
	(&epochWorld{t: t, s: s}).remake("topic")
	began := time.Now()
	send(was, more, 1)
	p.drain(was+more, 0)
	a.Lag, a.RSS = time.Since(began).Round(100*time.Millisecond).String(), p.peak()
	if log := string(p.whole()); !strings.Contains(log, "deleted and made again") ||
		strings.Contains(log, "records were lost") {
		t.Error("the log does not say that the topic was made again, or says that records were lost")
	}
	p.stop()
	p = run(t, s)
	send(was+more, 1, 1)
	st := p.drain(was+more+1, 0)
	a.Exact = st.Counts.Predictions == was+more+1 && st.Counts.Labelled == was+more+1 && st.Counts.Duplicates == 0
	if !a.Exact {
		t.Errorf("counts %+v, want %d each", st.Counts, was+more+1)
	}
	p.stop()
}
