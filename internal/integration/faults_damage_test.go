//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// damagedCheckpoint stops all processes, flips bytes in the newest checkpoint of every task, and starts them again:
// they fall back to the one before and read the stream again from there.
func (s *suite) damagedCheckpoint(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	s.disturbed(t, d, func(*producer) {
		for i := range 2 {
			s.progress(t, d, 0.3+0.3*float64(i))
			s.fallBack(d, i == 0, s.flipNewest)
		}
	})
	d.journalsThere()
}

// journalsThere checks that every fallback knew in which order the records had been taken.
func (d *deployment) journalsThere() {
	d.t.Helper()
	if n := d.logged("the order of what was taken since is not known"); n > 0 {
		d.t.Errorf("%d log lines tell that a journal is missing", n)
	}
}

// fallBack ends all processes, damages checkpoints, and starts them again.
func (s *suite) fallBack(d *deployment, gently bool, damage func(*deployment) int) {
	t := d.t
	t.Helper()
	for _, w := range d.workers {
		if gently {
			w.stop()
		} else {
			w.kill()
		}
	}
	damaged, before := damage(d), d.logged(unusable)
	d.start()
	d.ready(2 * time.Minute)
	n := d.logged(unusable) - before
	d.did("newest checkpoint of %d tasks damaged", damaged)
	t.Logf("%d times the one before was taken", n)
	if damaged == 0 || n < damaged {
		t.Errorf("%d checkpoints were damaged, and %d log lines tell that one could not be used", damaged, n)
	}
}

const unusable = "checkpoint cannot be used, trying the one before"

// flipNewest damages the newest file of every task that has one to fall back to.
func (s *suite) flipNewest(d *deployment) (damaged int) {
	for _, files := range d.checkpoints() {
		if len(files) > 1 {
			s.flip(d.t, files[0])
			damaged++
		}
	}
	return damaged
}

// flip changes one byte of a file somewhere.
func (s *suite) flip(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[s.random.IntN(len(b))] ^= 1 << s.random.IntN(8)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// claimsWithoutBody kills all processes and leaves, for every task, a claim of the next checkpoint whose chunks are not
// there, as if the brokers had lost them: the tasks fall back to the one before.
func (s *suite) claimsWithoutBody(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	s.disturbed(t, d, func(*producer) {
		for i := range 2 {
			s.progress(t, d, 0.3+0.3*float64(i))
			s.fallBack(d, i == 0, claimWithoutBody)
		}
	})
}

func claimWithoutBody(d *deployment) (damaged int) {
	d.t.Helper()
	newest := map[string]uint64{}
	for _, r := range d.read("checkpoints") {
		var c struct {
			Key    string `json:"key"`
			Number uint64 `json:"number"`
		}
		if !strings.HasPrefix(string(r.Key), "claim/") || r.Value == nil {
			continue
		}
		if err := json.Unmarshal(r.Value, &c); err != nil {
			d.t.Fatalf("claim %s: %v", r.Key, err)
		}
		newest[c.Key] = max(newest[c.Key], c.Number)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(d.cluster.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	maps.DeleteFunc(newest, func(key string, _ uint64) bool {
		return !strings.Contains(key, "/shards/") && !strings.Contains(key, "/models/")
	})
	for key, n := range newest {
		r := &kgo.Record{
			Topic: d.topic("checkpoints"),
			Key:   fmt.Appendf(nil, "claim/%s/%020d/lost", key, n+1),
			Value: fmt.Appendf(nil, `{"key": %q, "number": %d, "writer": "lost", "partition": 1, `+
				`"chunks": [999999999], "bytes": 10}`, key, n+1),
		}
		if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			d.t.Fatal(err)
		}
		damaged++
	}
	return damaged
}

// damagedSparse damages checkpoints where it is hardest: few rows a pane, many of them late in one interleaving and in
// time in another, inputs that fall idle. What an undisturbed run has cannot be compared with, since no two runs have
// the same late rows; but every pane message that was shown twice must be the same, and every row must be counted once.
func (s *suite) damagedSparse(t *testing.T, o deployOptions) {
	in := s.input
	in.rows, in.flush = 6000, time.Second
	random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
	held := map[lane][]repeat{}
	in.mangle = func(stream feed.Stream, partition int32, m feed.Message) []feed.Message {
		l := lane{stream, partition}
		var out []feed.Message
		wait := held[l][:0:0]
		for _, h := range held[l] {
			if h.after <= m.Time {
				out = append(out, h.message)
			} else {
				wait = append(wait, h)
			}
		}
		switch {
		case m.Value == nil:
		case random.IntN(4) == 0: // past the allowed lateness
			wait = append(wait, repeat{m, m.Time + random.Int64N(int64(time.Minute))})
		default:
			out = append(out, m)
		}
		held[l] = wait
		return out
	}
	o.idle = time.Second
	d := s.deploy(t, o)
	d.rows = in.total()
	d.start()
	d.ready(2 * time.Minute)
	p := d.produce(in, time.Minute)
	for i := range 4 {
		time.Sleep(5*time.Second + s.during(4*time.Second))
		s.fallBack(d, i%2 == 0, s.flipNewest)
	}
	p.wait(t, drainLimit)
	v := s.drained(d, in.total())
	d.stop()
	if n, detail := pipeline.Unaccounted(v.counts); n != 0 {
		t.Errorf("the counts do not add up: %s", detail)
	}
	for _, name := range []string{"predictions", "labels", "joined", "labelled"} {
		if v.counts[name] != in.total() {
			t.Errorf("count %s: got %d, want the %d rows sent", name, v.counts[name], in.total())
		}
	}
	if v.counts["late"] == 0 {
		t.Error("no row was late: the test did not test it")
	}
	d.journalsThere()
	d.panesAgree()
	d.everyRowOnce(in)
	s.quiet(t, d)
}

// panesAgree checks that pane messages of one number have the same bytes.
func (d *deployment) panesAgree() {
	d.t.Helper()
	type number struct {
		partition int32
		shard     int
		seq       uint64
	}
	first, repeats := map[number][]byte{}, 0
	for _, r := range d.read("panes") {
		m, err := pipeline.DecodePane(r.Value)
		if err != nil {
			d.t.Fatalf("panes/%d@%d: %v", r.Partition, r.Offset, err)
		}
		n := number{r.Partition, m.Shard, m.Seq}
		old, ok := first[n]
		if !ok {
			first[n] = r.Value
			continue
		}
		if repeats++; !bytes.Equal(old, r.Value) {
			d.t.Errorf("panes/%d@%d: message %d of shard %d is another than the first of that number", r.Partition,
				r.Offset, m.Seq, m.Shard)
		}
	}
	d.t.Logf("%d pane messages, %d repeats", len(first), repeats)
	if repeats == 0 {
		d.t.Error("no pane message was shown twice: the test did not test it")
	}
}

// everyRowOnce checks that the window that holds the whole stream has every row, by the last pane that it saw.
func (d *deployment) everyRowOnce(in input) {
	d.t.Helper()
	last := map[string]record.Snapshot{}
	for _, r := range d.read("snapshots") {
		var s record.Snapshot
		if err := json.Unmarshal(r.Value, &s); err != nil {
			d.t.Fatal(err)
		}
		if s.Window.Name == "day" && s.Slice == "" && !last[s.Model].At.After(s.At) {
			last[s.Model] = s
		}
	}
	for _, m := range in.models {
		if s := last[m.name]; s.Labelled != in.perModel() || s.Predictions != in.perModel() {
			d.t.Errorf("model %s: the day has %d predictions and %d labelled rows, want %d", m.name, s.Predictions,
				s.Labelled, in.perModel())
		}
	}
}
