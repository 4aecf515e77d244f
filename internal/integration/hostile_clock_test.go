//go:build integration

package integration

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

func init() {
	hostile["clock-ahead"] = clockAhead
	hostile["clock-behind"] = func(t *testing.T, a *attack) { clockBehind(t, a, configure) }
	hostile["clock-behind-unkeyed"] = func(t *testing.T, a *attack) { clockBehind(t, a, configureSplit) }
	hostile["clock-future"] = clockFuture
	hostile["clock-silent"] = clockSilent
	hostile["clock-let-go"] = clockLetGo
}

// clockRows is the rows of each stream of these scenarios.
const clockRows = 3000

// clocked is what /api/v1/status says of clocks.
type clocked struct {
	Process struct {
		Drained bool `json:"drained"`
		Counts  struct {
			counts
			LateByModel  map[string]int64 `json:"late_by_model"`
			AheadByModel map[string]int64 `json:"ahead_by_model"`
		} `json:"counts"`
		Waiting []struct{ Text string } `json:"waiting_for"`
	} `json:"process"`
}

func (p *process) clocks() (c clocked) {
	p.mustGet("/api/v1/status", &c)
	return c
}

// clockStream is the messages of a model, with labels up to 30 s after their rows.
func clockStream(t *testing.T, s settings, model string, at time.Time, end bool) []kafka.Message {
	t.Helper()
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	src, err := rows.Open(feed.Order{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{Model: model, Version: "1", Partitions: partitions, EventRate: 20,
		Start: at.UnixNano(), DelayMax: 30 * time.Second, Batch: 16, Seed: 5, Limit: clockRows, End: end,
		IDPrefix: model})
	if err != nil {
		t.Fatal(err)
	}
	msgs, _, _ := feedMessages(t, f, s, math.MaxInt)
	return msgs
}

// lag makes the records' timestamps so much earlier than the event times are: those are ahead.
func lag(msgs []kafka.Message, d time.Duration) []kafka.Message {
	for i := range msgs {
		msgs[i].Time = msgs[i].Time.Add(-d)
	}
	return msgs
}

// byStamp are the messages of streams in the order of their records' timestamps; each stream keeps its own.
func byStamp(of ...[]kafka.Message) []kafka.Message {
	all := slices.Concat(of...)
	slices.SortStableFunc(all, func(a, b kafka.Message) int { return a.Time.Compare(b.Time) })
	return all
}

// withoutEnd drops the control records.
func withoutEnd(msgs []kafka.Message) []kafka.Message {
	return slices.DeleteFunc(msgs, func(m kafka.Message) bool { return len(m.Value) == 0 })
}

// clockSettings lets go of nothing before the end of the test asks for it.
const clockSettings = `
windows: [{name: day, kind: time, size: 24h}]
refit: {method: none}
`

// clockAlone is the good model's snapshot where it is alone.
func clockAlone(t *testing.T) string {
	t.Helper()
	s := configure(t, "event_time: {idle_timeout: 0s}\n"+clockSettings)
	p := run(t, s)
	kafkatest.Write(t, brokers, clockStream(t, s, "good", start, true)...)
	p.drain(clockRows, clockRows)
	p.stop()
	return goodDay(t, s)
}

// goodDay is the good model's last snapshot of the day, as text.
func goodDay(t *testing.T, s settings) string {
	t.Helper()
	for _, snap := range latest(t, s) {
		if snap.Model == "good" && snap.Slice == "" && snap.Window.Name == "day" {
			return fmt.Sprintf("%d rows, %d labelled, accuracy %s, ece %s, nll %s", snap.Predictions, snap.Labelled,
				show(snap.Raw.Accuracy), show(snap.Raw.ECE), show(snap.Raw.NLL))
		}
	}
	t.Fatal("the good model has no snapshot")
	return ""
}

// clockAhead has a model whose event times are 4 minutes ahead, which is allowed, beside a good one.
func clockAhead(t *testing.T, a *attack) {
	a.Input = "a model whose event times are 4 minutes ahead, in the same partitions"
	a.Before = "2,800 of 3,000 rows of the good model late"
	want := clockAlone(t)
	s := configure(t, "event_time: {idle_timeout: 3s}\n"+clockSettings)
	p := run(t, s)
	bad := lag(withoutEnd(clockStream(t, s, "ahead", start.Add(4*time.Minute), false)), 4*time.Minute)
	began := time.Now()
	kafkatest.Write(t, brokers, byStamp(withoutEnd(clockStream(t, s, "good", start, false)), bad)...)
	p.drain(2*clockRows, 2*clockRows)
	a.Lag = time.Since(began).Round(time.Second / 10).String()
	p.wait(30*time.Second, "have the good model's last pane", func() bool { return goodDay(t, s) == want })
	c := p.clocks().Process.Counts
	a.Exact, a.RSS = goodDay(t, s) == want && c.LateByModel["good/1"] == 0, peakRSS(p.cmd.Process.Pid)
	if !a.Exact {
		t.Errorf("good model: %s, late %v; want %s and none late", goodDay(t, s), c.LateByModel, want)
	}
	if n := sum(c.Rejected); n != 0 || c.Late != sum(c.LateByModel) {
		t.Errorf("got %d rejected, late %d by model %v", n, c.Late, c.LateByModel)
	}
}

// clockFuture has rows, and records, of a clock that is a day ahead.
func clockFuture(t *testing.T, a *attack) {
	a.Input = "event times, then records too, a day ahead"
	a.Before = "the good model's rows of the next day late"
	want := clockAlone(t)
	s := configure(t, "event_time: {idle_timeout: 3s}\n"+clockSettings)
	p := run(t, s)
	rows := lag(withoutEnd(clockStream(t, s, "future", start.Add(24*time.Hour), false)), 24*time.Hour)
	records := withoutEnd(clockStream(t, s, "record", time.Now().Add(30*time.Minute), false))
	began := time.Now()
	kafkatest.Write(t, brokers, records[:40]...)
	kafkatest.Write(t, brokers, byStamp(withoutEnd(clockStream(t, s, "good", start, false)), rows)...)
	p.drain(clockRows, clockRows)
	a.Lag = time.Since(began).Round(time.Second / 10).String()
	p.wait(30*time.Second, "have the good model's last pane", func() bool { return goodDay(t, s) == want })
	c := p.clocks().Process.Counts
	a.Exact, a.RSS = goodDay(t, s) == want && c.Late == 0, peakRSS(p.cmd.Process.Pid)
	if !a.Exact {
		t.Errorf("good model: %s, late %d; want %s and none late", goodDay(t, s), c.Late, want)
	}
	if c.AheadByModel["future/1"] != c.Rejected["too_far_ahead"] || c.Rejected["too_far_ahead"] != 2*clockRows {
		t.Errorf("future: ahead %v, rejected %v; want all %d", c.AheadByModel, c.Rejected, 2*clockRows)
	}
	if c.AheadByModel["record/1"] == 0 || c.AheadByModel["record/1"] != c.Rejected["record_ahead"] {
		t.Errorf("record: ahead %v, rejected %v; want them equal and not 0", c.AheadByModel, c.Rejected)
	}
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += int64(len(m.Value))
	}
	live := p.hashOf("good")
	if again := replayed(t, s, binary); again["good"] != live || live == "" || len(again) != 1 {
		t.Errorf("a replay's state is %v, want that of the live run, good: %s", again, live)
	}
}

// clockBehind has a process whose own clock is eight minutes behind those of producers and brokers.
func clockBehind(t *testing.T, a *attack, configured func(*testing.T, string) settings) {
	a.Input = "a process whose own clock is 8 minutes behind"
	a.Before = "all rows of all producers rejected"
	s := configured(t, "event_time: {idle_timeout: 3s}\n"+clockSettings)
	s.binary = buildWithClock(t, "package main\n\nimport \"time\"\n\nfunc init() { time.ClockJump = -480 }\n")
	rows := withoutEnd(clockStream(t, s, "good", time.Now(), false))
	first := slices.IndexFunc(rows, func(m kafka.Message) bool { return m.Topic == s.topic("logits") })
	kafkatest.Write(t, brokers, rows[first]) // before anything else that tells the time is written
	p := run(t, s)
	told := func() int {
		log, _ := os.ReadFile(p.log)
		return strings.Count(string(log), "the clock of this machine is behind")
	}
	p.wait(time.Minute, "refuse rows and learn what time it is", func() bool {
		return p.clocks().Process.Counts.Rejected["record_ahead"] > 0 && told() > 0
	})
	began := time.Now()
	kafkatest.Write(t, brokers, slices.Delete(rows, first, first+1)...)
	var c counts
	p.wait(time.Minute, "take the other rows", func() bool {
		now := p.clocks().Process
		c = now.Counts.counts
		return c.Predictions+c.Rejected["record_ahead"] == clockRows && now.Drained
	})
	a.Lag, a.RSS = time.Since(began).Round(time.Second/10).String(), peakRSS(p.cmd.Process.Pid)
	// The first message has four rows. Where it is split, its parts meet shards that have not heard of the time yet.
	a.Exact = c.Rejected["record_ahead"] == 4 && told() == 1
	if !a.Exact {
		t.Errorf("rejected %v, want the 4 rows of the first message; %d lines in the log, want one", c.Rejected, told())
	}
	a.Note = "4 rows of the first message rejected"
}

// clockSilent has a partition that never says anything while nobody is let go.
func clockSilent(t *testing.T, a *attack) {
	a.Input = "one partition without a message, idle_timeout 0s"
	a.Before = "no number, and no word why"
	s := configure(t, "event_time: {idle_timeout: 0s}\n"+clockSettings)
	p := run(t, s)
	msgs := slices.DeleteFunc(clockStream(t, s, "good", start, true), func(m kafka.Message) bool {
		return m.Partition == 3 && m.Topic == s.topic("logits")
	})
	kafkatest.Write(t, brokers, msgs...)
	want := fmt.Sprintf("waiting for %s/3 since ", s.topic("logits"))
	p.wait(time.Minute, "name the partition", func() bool {
		w := p.clocks().Process.Waiting
		return len(w) == 1 && strings.HasPrefix(w[0].Text, want)
	})
	metrics := `plumbline_waiting_for_timestamp_seconds{input="logits",partition="3"}`
	if text := p.scrape(); !strings.Contains(text, metrics) {
		t.Errorf("no %s in /metrics", metrics)
	}
	a.RSS, a.Note = peakRSS(p.cmd.Process.Pid), "status, page, metric and alert name the partition"
}

// clockLetGo has a partition that is let go, and speaks again with rows that the others have passed.
func clockLetGo(t *testing.T, a *attack) {
	a.Input = "a partition silent for longer than idle_timeout, then its rows"
	a.Before = "late rows in no count"
	s := configure(t, "event_time: {idle_timeout: 2s}\n"+clockSettings)
	p := run(t, s)
	of := func(m kafka.Message) bool { return m.Partition == 3 }
	all := clockStream(t, s, "good", start, false)
	now, after := slices.DeleteFunc(slices.Clone(all), of), slices.DeleteFunc(slices.Clone(all),
		func(m kafka.Message) bool { return !of(m) })
	kafkatest.Write(t, brokers, now...)
	p.drain(clockRows/2, clockRows/2)
	kafkatest.Write(t, brokers, after...)
	p.drain(clockRows, clockRows)
	c := p.clocks().Process.Counts
	if c.Late < clockRows/8 || c.LateByModel["good/1"] != c.Late {
		t.Errorf("late %d, by model %v; want most of partition 3", c.Late, c.LateByModel)
	}
	log, err := os.ReadFile(p.log)
	for _, want := range []string{"nobody waits for it", "has messages again, and is waited for"} {
		if err != nil || !strings.Contains(string(log), want) {
			t.Errorf("the log does not say that a partition %s: %v", want, err)
		}
	}
	a.RSS, a.Note = peakRSS(p.cmd.Process.Pid), fmt.Sprintf("%d late rows counted", c.Late)
}

// scrape is /metrics.
func (p *process) scrape() string {
	p.t.Helper()
	resp, err := http.Get("http://" + p.s.listen + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}

// peakRSS is the most memory that a process has had, in bytes.
func peakRSS(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}
