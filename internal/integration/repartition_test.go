//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

const (
	repartitionRows  = 40_000
	repartitionKills = 4
)

const repartitionMore = oneDay + "slices: {columns: [device]}\n"

// configureSplit is configure of topics that plumbline splits by id.
func configureSplit(t *testing.T, more string) settings {
	t.Helper()
	return configureEdited(t, more, "keyed: true", "keyed: false")
}

// byID is the topic that shards read of a topic that is split.
func (s settings) byID(key string) string {
	return fmt.Sprintf("%s.%s-by-id-%d", s.prefix, s.topic(key), partitions)
}

// anywhere spreads messages over partitions, and control records to all.
func anywhere(of int) func(i int, m *feed.Message) []int {
	return func(i int, m *feed.Message) (to []int) {
		if len(m.Headers) == 0 {
			return []int{i / 2 % of}
		}
		for p := range of {
			to = append(to, p)
		}
		return to
	}
}

// stage starts `plumbline run` with some of the stages and a page of its own.
func stage(t *testing.T, s settings, stages string) *process {
	t.Helper()
	b, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	other := s
	other.listen = freePort(t)
	other.file = filepath.Join(t.TempDir(), "plumbline.yaml")
	if err := os.WriteFile(other.file, []byte(strings.Replace(string(b), s.listen, other.listen, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, s: other, log: filepath.Join(t.TempDir(), "run.log"), done: make(chan error, 1)}
	f, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.cmd = exec.Command(binary, "run", "-c", other.file, "--stages", stages)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", stages, p.tail())
		}
	})
	return p
}

// repartitionFeed are real rows with features and a cohort, as messages for so many partitions.
func repartitionFeed(t *testing.T, of int) []feed.Message {
	t.Helper()
	rows := loadRows(t, "c10_chenyaofo19_logits.npz", "resnet20", 10)
	rows.D, rows.Features = 4, make([]float32, 4*rows.N)
	device := feed.Column{Name: "device"}
	for i := range rows.N {
		rows.Features[4*i] = float32(i)
		device.Values = append(device.Values, []string{"phone", "car", "wall"}[i%3])
	}
	rows.Slices = []feed.Column{device}
	src, err := rows.Open(feed.Order{Shuffle: true, Seed: 3, Repeat: repartitionRows / rows.N})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{Model: "m", Version: "1", Partitions: of, EventRate: 100,
		Start: start.UnixNano(), DelayMax: time.Minute, Batch: 100, Seed: 3, End: true})
	if err != nil {
		t.Fatal(err)
	}
	var out []feed.Message
	for {
		m, err := f.Next()
		if err != nil {
			return out
		}
		out = append(out, m)
	}
}

// writeFeed sends messages of a feed; to says which partitions a message goes to.
func writeFeed(t *testing.T, s settings, ms []feed.Message, to func(i int, m *feed.Message) []int) {
	t.Helper()
	var out []kafka.Message
	for i := range ms {
		for _, p := range to(i, &ms[i]) {
			m := kafka.Message{Topic: s.topic(ms[i].Stream.String()), Partition: p, Value: ms[i].Value,
				Time: time.Unix(0, ms[i].Time)}
			for _, h := range ms[i].Headers {
				m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
			out = append(out, m)
		}
	}
	for len(out) > 0 {
		n := min(len(out), 500)
		kafkatest.Write(t, brokers, out[:n]...)
		out = out[n:]
	}
}

// ends is how many offsets the partitions of a topic have together.
func ends(t *testing.T, topic string, of int) (n int64) {
	t.Helper()
	var ask []kafka.OffsetRequest
	for p := range of {
		ask = append(ask, kafka.LastOffsetOf(p))
	}
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	res, err := client.ListOffsets(context.Background(),
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Topics[topic] {
		n += p.LastOffset
	}
	return n
}

// TestRepartition sends real rows once by id, and once in whatever batches to topics that are split by two processes.
// One is killed -9 while it works; then what the groups have committed is lost: state, counts and snapshots are the
// same.
func TestRepartition(t *testing.T) {
	t.Parallel()
	keyed := configure(t, repartitionMore)
	writeFeed(t, keyed, repartitionFeed(t, partitions),
		func(_ int, m *feed.Message) []int { return []int{int(m.Partition)} })
	p := run(t, keyed)
	p.drain(repartitionRows, repartitionRows)
	want := p.hashOf("m")
	p.stop()

	s := configureSplit(t, repartitionMore)
	writeFeed(t, s, repartitionFeed(t, 1), anywhere(partitions))
	rest := stage(t, s, "shards,models")
	total := int64(repartitionRows / 100 * partitions) // about so many messages of predictions
	for k := range int64(repartitionKills) {
		r := stage(t, s, "repartition")
		r.wait(time.Minute, "write", func() bool {
			return ends(t, s.byID("logits"), partitions) > total*(k+1)/(repartitionKills+2)
		})
		r.kill()
	}
	r := stage(t, s, "repartition")
	rest.drain(repartitionRows, repartitionRows)
	r.stop()
	rest.stop()
	before := ends(t, s.byID("logits"), partitions)
	forgetOffsets(t, splitGroups(s))
	r, rest = stage(t, s, "repartition"), stage(t, s, "shards,models")
	r.wait(time.Minute, "write everything again", func() bool {
		st, err := r.status()
		return err == nil && st.Drained && ends(t, s.byID("logits"), partitions) >= before+total/2
	})
	st := rest.drain(repartitionRows, repartitionRows)
	if got := rest.hashOf("m"); got != want || want == "" {
		t.Errorf("state hash %s, of the keyed rows %s", got, want)
	}
	c := st.Counts
	if c.Predictions != repartitionRows || c.Labels != repartitionRows || c.Labelled != repartitionRows ||
		c.Late+c.Duplicates+sum(c.Rejected)+sum(c.DeadLetters) != 0 {
		t.Errorf("counts %+v", c)
	}
	if c.Repeats["logits"] < before/2 {
		t.Errorf("%d repeats of %d messages, want at least half: everything was read again", c.Repeats["logits"],
			before)
	}
	t.Logf("%d messages by id after the kills, repeats skipped: %v", before, c.Repeats)
	r.stop()
	rest.stop()
	if got, want := lastSnapshots(t, s.topic("snapshots")), lastSnapshots(t,
		keyed.topic("snapshots")); len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d snapshots differ from the %d of the keyed rows", len(got), len(want))
	}
}

// splitGroups are the groups of topics that are split, with their topics.
func splitGroups(s settings) map[string]string {
	groups := map[string]string{}
	for _, in := range []string{"logits", "labels"} {
		groups[fmt.Sprintf("%s-repartition-%s-%d", s.prefix, in, partitions)] = s.topic(in)
	}
	return groups
}

// forgetOffsets sets what groups, each of a topic, have committed back to the start.
func forgetOffsets(t *testing.T, groups map[string]string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	for group, topic := range groups {
		req := &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{}}
		for p := range partitions {
			req.Topics[topic] = append(req.Topics[topic], kafka.OffsetCommit{Partition: p, Offset: 0})
		}
		// The group is empty when the sessions of members that were killed have ended.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			res, err := client.OffsetCommit(context.Background(), req)
			if err == nil {
				for _, p := range res.Topics[topic] {
					if p.Error != nil {
						err = p.Error
					}
				}
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("set back the offsets of %s: %v", req.GroupID, err)
			}
		}
	}
}

// addPartitions gives a topic more of them.
func addPartitions(t *testing.T, topic string, count int) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second}
	res, err := client.CreatePartitions(context.Background(),
		&kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(count)}}})
	if err == nil {
		err = res.Errors[topic]
	}
	if err != nil {
		t.Fatalf("add partitions to %s: %v", topic, err)
	}
	// until the new ones have leaders
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		last := count - 1
		client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: &kafka.Transport{}}
		res, err := client.ListOffsets(context.Background(),
			&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(last)}}})
		if err == nil && len(res.Topics[topic]) == 1 && res.Topics[topic][0].Error == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("partition %d of %s has no leader: %v", last, topic, err)
		}
	}
}

// TestAddedPartitions: topics that are split may grow, and what comes in the new partitions is read. (Rows that came
// there before anybody knew of them may be late.) Where keyed logits get partitions the run goes on, also after a
// restart, and says that nobody reads them.
func TestAddedPartitions(t *testing.T) {
	t.Parallel()
	s := configureSplit(t, oneDay)
	ms := repartitionFeed(t, 1)
	p := stage(t, s, "all")
	p.wait(time.Minute, "answer", func() bool { _, err := p.status(); return err == nil })
	addPartitions(t, s.topic("logits"), partitions+1)
	addPartitions(t, s.topic("labels"), partitions+1)
	writeFeed(t, s, ms, anywhere(partitions+1))
	if st := p.drain(repartitionRows, repartitionRows); st.Counts.Labelled != repartitionRows {
		t.Errorf("counts %+v", st.Counts)
	}
	p.stop()

	s = configure(t, oneDay)
	p = stage(t, s, "all")
	p.wait(time.Minute, "answer", func() bool { _, err := p.status(); return err == nil })
	addPartitions(t, s.topic("logits"), partitions+1)
	named := func(p *process) {
		t.Helper()
		want := fmt.Sprintf("topic %s has 5 partitions, and had 4 when the deployment began", s.topic("logits"))
		p.wait(time.Minute, "name the partition that nobody reads", func() bool {
			err := p.get("/-/ready", nil)
			return err != nil && strings.Contains(err.Error(), want)
		})
	}
	named(p)
	p.stop()
	named(stage(t, s, "all"))
}

// TestPause stops reading over HTTP, restarts beside it, and goes on: nothing is lost, and a stopped process keeps its
// partitions.
func TestPause(t *testing.T) {
	s := configure(t, repartitionMore)
	b, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, []byte(strings.Replace(string(b), "http:\n", "http:\n  control: true\n", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	ms := repartitionFeed(t, partitions)
	by := func(_ int, m *feed.Message) []int { return []int{int(m.Partition)} }
	writeFeed(t, s, ms[:len(ms)/2], by)
	p := run(t, s)
	p.wait(time.Minute, "be ready", func() bool {
		return p.get("/-/ready", nil) == nil || !strings.Contains(fmt.Sprint(p.get("/-/ready", nil)), "503")
	})
	runOK(t, "pause", "--url", "http://"+s.listen, "--why", "a test", "--by", "ann", "--wait", "30s")
	if err := p.get("/-/ready", nil); err == nil || !strings.Contains(err.Error(), `paused since`) ||
		!strings.Contains(err.Error(), "a test") {
		t.Errorf("ready says %v", err)
	}
	at, err := p.status()
	if err != nil {
		t.Fatal(err)
	}
	writeFeed(t, s, ms[len(ms)/2:], by)
	time.Sleep(8 * time.Second) // longer than the session's time-out: who is paused keeps its place by heartbeats
	if st, err := p.status(); err != nil || st.Counts.Predictions != at.Counts.Predictions {
		t.Errorf("%d predictions while paused, %d before: %v", st.Counts.Predictions, at.Counts.Predictions, err)
	}
	runOK(t, "resume", "--url", "http://"+s.listen)
	if st := p.drain(repartitionRows, repartitionRows); st.Counts.Labelled != repartitionRows || st.Counts.Late != 0 {
		t.Errorf("counts %+v", st.Counts)
	}
	if err := p.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error(err)
	}
	p.stop()
}
