//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

func init() {
	for _, store := range []string{"directory", "topic"} {
		hostile["growth-"+store] = func(t *testing.T, a *attack) { growOnline(t, a, store) }
	}
}

// growthConfig closes panes and windows while the stream goes on. A row that came late would change what is published.
const growthConfig = `
event_time: {idle_timeout: 6s, allowed_lateness: 2m, pane: 10s}
join: {wait: 30m}
stats: {bins: 15, extra_bins: [10]}
windows: [{name: day, kind: time, size: 24h}, {name: minutes, kind: time, size: 2m}]
slices: {columns: [device]}
rules: []
refit: {method: temperature, period: 3m, min_rows: 500}
models: [{name: net, classes: 10}]
`

// Of the stream: event time passes twenty times as fast as time.
const (
	growthStep  = 20 * time.Millisecond // of event time, between two rows
	growthTick  = 100 * time.Millisecond
	growthTicks = 100 // rows of a tick
	growthDelay = 40 * time.Second
	// growthIdle is longer than the idle timeout: after it the last panes are closed.
	growthIdle = 7500 * time.Millisecond
)

// growthStream is a live stream of three producers, each of which learns of new partitions later than the one before.
type growthStream struct {
	t     *testing.T
	s     settings
	rows  *feed.Rows
	mu    sync.Mutex
	sent  int // rows
	due   []int
	knows [3]int // partitions, by producer
	at    time.Time
	still time.Duration // the longest between two ticks
}

func newGrowthStream(t *testing.T, s settings) *growthStream {
	return &growthStream{t: t, s: s, rows: loadRows(t, "c10_chenyaofo19_logits.npz", "resnet20", 10),
		knows: [3]int{partitions, partitions, partitions}}
}

func growthTime(i int) time.Time { return start.Add(time.Duration(i) * growthStep) }

// delayOf is when a row's label comes after it.
func delayOf(i int) time.Duration {
	return time.Duration(i*7919%1000) * growthDelay / 1000
}

// tick sends the predictions of one tick, and the labels that are due by its end.
func (g *growthStream) tick(last bool) {
	end := growthTime(g.sent + growthTicks)
	var fresh, due []int
	for i := range growthTicks {
		fresh = append(fresh, g.sent+i)
	}
	g.due = append(g.due, fresh...)
	var wait []int
	for _, i := range g.due {
		if last || growthTime(i).Add(delayOf(i)).Before(end) {
			due = append(due, i)
		} else {
			wait = append(wait, i)
		}
	}
	slices.SortFunc(due, func(a, b int) int {
		return growthTime(a).Add(delayOf(a)).Compare(growthTime(b).Add(delayOf(b)))
	})
	g.due = wait
	msgs := append(g.messages(fresh, false), g.messages(due, true)...)
	kafkatest.Write(g.t, brokers, msgs...)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent += growthTicks
	if !g.at.IsZero() {
		g.still = max(g.still, time.Since(g.at))
	}
	g.at = time.Now()
}

func (g *growthStream) total() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(g.sent)
}

// messages are rows, or their labels, by producer and partition.
func (g *growthStream) messages(rows []int, labels bool) (out []kafka.Message) {
	type place struct{ producer, partition int }
	by := map[place][]int{}
	for _, i := range rows {
		p := place{producer: i % 3}
		p.partition = murmur.PartitionOf(fmt.Appendf(nil, "r%d", i), g.knows[p.producer])
		by[p] = append(by[p], i)
	}
	for p, rows := range by {
		m := kafka.Message{Topic: g.s.topic("logits"), Partition: p.partition}
		c := arrowio.Columns{Model: "net", Version: "1", K: 10, Slices: []arrowio.StringColumn{{Name: "device"}}}
		var classes []int32
		for _, i := range rows {
			at := growthTime(i)
			if labels {
				at = at.Add(delayOf(i))
			}
			of := i % g.rows.N
			c.IDs, c.TS = append(c.IDs, fmt.Sprintf("r%d", i)), append(c.TS, at.UnixNano())
			c.Logits = append(c.Logits, g.rows.Scores[of*10:of*10+10]...)
			c.Slices[0].Values = append(c.Slices[0].Values, []string{"phone", "car"}[i%2])
			classes = append(classes, g.rows.Label[of])
			m.Time = at
		}
		var err error
		if m.Value, err = arrowio.EncodePredictions(c); labels {
			m.Topic = g.s.topic("labels")
			m.Value, err = arrowio.EncodeLabels("net", "1", c.IDs, c.TS, classes)
		}
		if err != nil {
			g.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// live sends until ctx is done. A producer learns of new partitions some seconds after they are there.
func (g *growthStream) live(ctx context.Context) {
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	there, since := partitions, time.Now()
	tick := time.NewTicker(growthTick)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n%5 == 0 {
			of, err := kafkaio.Partitions(ctx, client, g.s.topic("labels"))
			if err == nil && of != there {
				there, since = of, time.Now()
			}
		}
		for p := range g.knows {
			if time.Since(since) >= time.Duration(p)*1200*time.Millisecond {
				g.knows[p] = there
			}
		}
		g.tick(false)
	}
}

// growthWorkers are the processes of a deployment.
type growthWorkers struct {
	t *testing.T
	s settings
	p []*process
}

// start starts a process that shares the state with the others.
func (w *growthWorkers) start(i int) {
	own := w.s
	if i > 0 {
		b, err := os.ReadFile(w.s.file)
		if err != nil {
			w.t.Fatal(err)
		}
		own.listen, own.file = freePort(w.t), filepath.Join(w.t.TempDir(), "plumbline.yaml")
		b = bytes.ReplaceAll(b, []byte(w.s.listen), []byte(own.listen))
		if err := os.WriteFile(own.file, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.p[i] = run(w.t, own)
}

// growthView is what the processes say together.
type growthView struct {
	drained bool
	counts  map[string]int64
	models  map[string]string
}

func (w *growthWorkers) view() (v growthView, err error) {
	v = growthView{drained: true, counts: map[string]int64{}, models: map[string]string{}}
	for _, p := range w.p {
		if p == nil {
			continue
		}
		var answer struct {
			Process workerStatus `json:"process"`
		}
		if err := p.get("/api/v1/status", &answer); err != nil {
			return v, err
		}
		st := answer.Process
		v.drained = v.drained && (st.Drained || len(st.Tasks) == 0)
		for _, task := range st.Tasks {
			if task.Task == "shard" {
				for name, n := range task.Counts {
					v.counts[name] += n
				}
			}
		}
		maps.Copy(v.models, st.Models)
	}
	return v, nil
}

// drain waits until all rows have been joined and nothing changes, although all partitions are idle by then.
func (w *growthWorkers) drain(rows int64) growthView {
	w.t.Helper()
	var v, last growthView
	began, since := time.Now(), time.Now()
	w.p[0].wait(90*time.Second, fmt.Sprintf("drain %d rows", rows), func() bool {
		var err error
		if v, err = w.view(); err != nil || !v.drained || v.counts["joined"] < rows {
			if since = time.Now(); time.Since(began) > 45*time.Second {
				w.t.Fatalf("%d rows have not come: drained %t, counts %v, %v", rows, v.drained, v.counts, err)
			}
			return false
		}
		if !maps.Equal(v.models, last.models) {
			last, since = v, time.Now()
		}
		return time.Since(since) > growthIdle
	})
	return v
}

// scaled is what an order took, from when it was given.
type scaled struct {
	from, to    int
	ended, done time.Duration // all shards have sealed their states, and all new ones have begun
	kills       int
}

// scale orders more shards, and kills processes meanwhile.
func (w *growthWorkers) scale(from, to int, r *rand.Rand) scaled {
	w.t.Helper()
	out := scaled{from: from, to: to}
	cmd := exec.Command(binary, "scale", "-c", w.s.file, "--partitions", fmt.Sprint(to), "--by", "ann", "--why",
		"a test")
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "shards begin") && out.ended == 0 {
				out.ended = time.Since(began)
			}
			w.t.Logf("%5.1f s: %s", time.Since(began).Seconds(), lines.Text())
		}
		out.done = time.Since(began)
		done <- cmd.Wait()
	}()
	kills := testsize.Pick(1, 3)
	for time.Since(began) < time.Minute {
		select {
		case err := <-done:
			if err != nil {
				w.t.Fatalf("scale: %v", err)
			}
			return out
		case <-time.After(time.Duration(200+r.IntN(1500)) * time.Millisecond):
		}
		if out.kills < kills {
			out.kills++
			i := 1 + r.IntN(len(w.p)-1)
			w.p[i].kill()
			w.start(i)
		}
	}
	_ = cmd.Process.Kill()
	w.t.Fatalf("scale has not ended\n%s", w.p[0].tail())
	return out
}

// growthTable has the lines of all stores.
var growthTable = "| checkpoints in | rows sent | shards | kills | all have ended | all have begun " +
	"| published after the end |\n" +
	"|---|---|---|---|---|---|---|\n"

// growOnline has a live stream of 4 partitions get 12, then 16, with kill -9 in between, and compares all that is
// published with a deployment that has 4 and reads the same rows undisturbed.
func growOnline(t *testing.T, a *attack, store string) {
	if store == "topic" && testsize.Pick(true, false) {
		t.Skip("the other store is enough for the short form")
	}
	a.Input = "4, 12, 16 partitions of a live stream; kill -9 while they change; checkpoints in a " + store
	a.Before = "partitions could not be added"
	configured := func() settings {
		return configureEdited(t, growthConfig, "checkpoints:", "checkpoints:\n  store: "+store, "  deadletter:",
			"  checkpoints: "+topicPrefix(t)+".checkpoints\n  deadletter:",
			"replication: 1", "replication: 1\n  session_timeout: 6s")
	}
	w := &growthWorkers{t: t, s: configured(), p: make([]*process, 3)}
	for i := range w.p {
		w.start(i)
	}
	g := newGrowthStream(t, w.s)
	ctx, stop := context.WithCancel(t.Context())
	var live sync.WaitGroup
	live.Go(func() { g.live(ctx) })
	r := rand.New(rand.NewPCG(1, uint64(len(store))))
	pause := testsize.Pick(2*time.Second, 15*time.Second)
	time.Sleep(pause)
	var took []scaled
	for i, to := range []int{12, 16} {
		took = append(took, w.scale([]int{partitions, 12}[i], to, r))
		time.Sleep(pause)
	}
	stop()
	live.Wait()
	g.tick(true)
	ended := time.Now()
	total := g.total()
	t.Logf("the producers stood still for up to %.1f s", g.still.Seconds())
	v := w.drain(total)
	a.Lag = fmt.Sprintf("%.1f s", time.Since(ended).Seconds())
	for _, name := range []string{"predictions", "labels", "joined", "labelled"} {
		if v.counts[name] != total {
			t.Errorf("%s: %d, sent were %d; counts %v", name, v.counts[name], total, v.counts)
		}
	}
	if n, detail := pipeline.Unaccounted(v.counts); n != 0 || v.counts["late"] != 0 || v.counts["waiting"] != 0 {
		t.Errorf("counts %v: %s", v.counts, detail)
	}
	for _, o := range took {
		growthTable += fmt.Sprintf("| %s | %d | %d → %d | %d | %.1f s | %.1f s | %s |\n", store, total, o.from, o.to,
			o.kills, o.ended.Seconds(), o.done.Seconds(), a.Lag)
		a.Note += fmt.Sprintf("%d → %d in %.1f s; ", o.from, o.to, o.done.Seconds())
	}
	for _, p := range w.p {
		a.RSS, a.Restart = max(a.RSS, peakRSS(p.cmd.Process.Pid)), a.Restart+p.restarts()
		p.stop()
	}
	got := allPublished(t, w.s)
	if again := replayed(t, w.s, binary); !maps.Equal(again, v.models) {
		t.Errorf("a replay's state is %v, want that of the live run, %v", again, v.models)
	}

	still := &growthWorkers{t: t, s: configured(), p: make([]*process, 1)}
	quiet := newGrowthStream(t, still.s)
	for int64(quiet.sent) < total-growthTicks {
		quiet.tick(false)
	}
	quiet.tick(true)
	still.start(0)
	want := still.drain(total)
	still.p[0].stop()
	if !maps.Equal(v.models, want.models) {
		t.Errorf("state hash %v, want %v", v.models, want.models)
	}
	wanted := allPublished(t, still.s)
	for key, value := range wanted {
		if got[key] != value {
			t.Errorf("%s is\n%s, want\n%s", key, got[key], value)
			break
		}
	}
	if len(got) != len(wanted) || wanted["calibrators 0"] == "" || len(wanted) < 10 {
		t.Errorf("%d records by key and window, want %d: a calibrator, and ten at least", len(got), len(wanted))
	}
	if a.Exact = !t.Failed(); a.Exact {
		writeSection(t, "growth", growthTable)
	}
}

// allPublished is what a deployment has published, by topic and key: of snapshots the last, of the rest all.
func allPublished(t *testing.T, s settings) map[string]string {
	out := lastSnapshots(t, s.topic("snapshots"))
	for _, name := range []string{"calibrators", "alerts"} {
		for i, text := range distinct(t, s.topic(name)) {
			var v any
			if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &v); err != nil {
				t.Fatal(err)
			}
			out[fmt.Sprintf("%s %d", name, i)] = text
		}
	}
	return out
}
