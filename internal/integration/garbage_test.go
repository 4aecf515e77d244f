//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/pipeline/record"
)

const garbageConfig = oneDay + `models: [{name: net, classes: 10}]
`

// badStream is a good stream with garbage between its messages, and what must be counted of it.
type badStream struct {
	msgs        []kafka.Message
	dead        [][]byte         // values that must end in the dead-letter topic
	rejected    map[string]int64 // rows by reason
	deadReasons map[string]int64 // messages with rejected rows, by reason; damaged ones are counted in damaged
	damaged     int64
	predictions int64
	labels      int64
}

// TestGarbage: 1 % damaged messages and 1 % of wrong content. All of it ends in the dead-letter topic with its reason
// and origin, the counts are exact, and the metrics of the good rows are those of the file.
func TestGarbage(t *testing.T) {
	t.Parallel()
	file := realdata.File(t, "c10jpeg_resnet_logits.npz")
	s := configure(t, garbageConfig)
	bad := makeBadStream(t, s, loadRows(t, "c10jpeg_resnet_logits.npz", "resnet20", 10))
	p := run(t, s)
	for chunk := range slices.Chunk(bad.msgs, 500) {
		kafkatest.Write(t, brokers, chunk...)
	}
	p.drain(bad.predictions, bad.labels)
	// The dead letters are visible once a checkpoint has passed; the process ends with one.
	var st status
	p.wait(30*time.Second, "count every damaged message", func() bool {
		var err error
		st, err = p.status()
		return err == nil && sum(st.Counts.DeadLetters) >= int64(len(bad.dead))
	})
	var api record.Snapshot
	p.mustGet("/api/v1/snapshots/latest?model=net&version=1&window=day", &api)
	p.stop()
	snaps := latest(t, s)

	t.Run("counts", func(t *testing.T) { checkGarbageCounts(t, st.Counts, bad) })
	t.Run("dead letters", func(t *testing.T) { checkDeadLetters(t, s, bad.dead) })
	t.Run("good rows", func(t *testing.T) {
		i := slices.IndexFunc(snaps, func(s record.Snapshot) bool { return s.Model == "net" && s.Slice == "" })
		if i < 0 {
			t.Fatal("no snapshot of model net")
		}
		if !reflect.DeepEqual(api, snaps[i]) {
			t.Errorf("latest snapshot of the API: got %+v, want that of the topic, %+v", api, snaps[i])
		}
		if got, want := snaps[i].Predictions, bad.predictions; got != want {
			t.Errorf("predictions: got %d, want %d, good but never labelled rows included", got, want)
		}
		snaps[i].Predictions = streamRows
		compareOffline(t, snaps[i], file+":resnet20")
	})
}

func makeBadStream(t *testing.T, s settings, rows *feed.Rows) *badStream {
	t.Helper()
	src, err := rows.Open(feed.Order{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{
		Model: "net", Version: "1", Partitions: partitions, EventRate: 100, Start: start.UnixNano(),
		DelayMax: 30 * time.Second, Batch: 4, Seed: 5, End: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	good, _, _ := feedMessages(t, f, s, math.MaxInt)
	b := &badStream{
		predictions: int64(rows.N),
		labels:      int64(rows.N),
		rejected:    map[string]int64{},
		deadReasons: map[string]int64{},
	}
	random := rand.New(rand.NewPCG(17, 4))
	for i, m := range good {
		b.msgs = append(b.msgs, m)
		// Control messages close the stream: nothing may follow.
		if len(m.Value) == 0 {
			continue
		}
		switch i % 100 {
		case 50:
			b.damage(m, i/100, random)
		case 99:
			b.wrong(t, s, m, i/100)
		}
	}
	return b
}

// damage adds a copy of m that cannot be decoded, of one of five kinds.
func (b *badStream) damage(m kafka.Message, kind int, random *rand.Rand) {
	v := bytes.Clone(m.Value)
	switch kind % 5 {
	case 0: // truncated inside the record batch
		v = v[:len(v)*2/3]
	case 1: // noise
		for i := range v {
			v[i] = byte(random.Uint32())
		}
		v[0] = 'x' // certainly no continuation marker
	case 2: // a metadata length of 2 GB
		copy(v[4:8], []byte{0xf0, 0xff, 0xff, 0x7f})
	case 3: // cut inside the schema
		v = v[:20]
	case 4: // text
		v = []byte(`{"logits": [1, 2, 3]}`)
	}
	m.Value, m.Headers = v, nil
	b.msgs = append(b.msgs, m)
	b.dead = append(b.dead, v)
	b.damaged++
}

// wrong adds a message that decodes, but with rows that cannot be right, of one of four kinds. Its rows come at the
// time of m, with ids of their own.
func (b *badStream) wrong(t *testing.T, s settings, m kafka.Message, kind int) {
	t.Helper()
	const n = 3
	c := arrowio.Columns{Model: "net", Version: "1", K: 10}
	for i := range n {
		c.IDs = append(c.IDs, fmt.Sprintf("bad-%d-%d", kind, i))
		c.TS = append(c.TS, m.Time.UnixNano())
	}
	topic, reason, rejected := "logits", "nonfinite_scores", int64(1)
	var value []byte
	var err error
	switch kind % 4 {
	case 0: // K changed
		c.K, reason, rejected = 12, "classes", n
		c.Logits = make([]float32, n*c.K)
		value, err = arrowio.EncodePredictions(c)
	case 1, 2: // one row of three not finite; the others are good, and never labelled
		c.Logits = make([]float32, n*c.K)
		c.Logits[c.K+3] = float32(math.NaN())
		if kind%4 == 2 {
			c.Logits[c.K+3] = float32(math.Inf(1))
		}
		b.predictions += n - 1
		value, err = arrowio.EncodePredictions(c)
	case 3: // labels out of range
		topic, reason, rejected = "labels", "label_range", n
		value, err = arrowio.EncodeLabels(c.Model, c.Version, c.IDs, c.TS, []int32{10, 11, 1 << 20})
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Topic, m.Value, m.Headers = s.topic(topic), value, nil
	b.msgs = append(b.msgs, m)
	b.dead = append(b.dead, value)
	b.rejected[reason] += rejected
	b.deadReasons[reason]++
}

func checkGarbageCounts(t *testing.T, c counts, b *badStream) {
	if b.damaged < 40 || len(b.deadReasons) != 3 {
		t.Fatalf("the stream has %d damaged messages and reasons %v; want at least 40 and 3 reasons", b.damaged,
			b.deadReasons)
	}
	if c.Predictions != b.predictions || c.Labels != b.labels || c.Joined != streamRows || c.Labelled != streamRows {
		t.Errorf("got %d predictions, %d labels, %d joined, %d labelled; want %d, %d, %d, %d",
			c.Predictions, c.Labels, c.Joined, c.Labelled, b.predictions, b.labels, streamRows, streamRows)
	}
	if fmt.Sprint(c.Rejected) != fmt.Sprint(b.rejected) {
		t.Errorf("rejected rows: got %v, want %v", c.Rejected, b.rejected)
	}
	damaged := sum(c.DeadLetters)
	for reason, want := range b.deadReasons {
		if c.DeadLetters[reason] != want {
			t.Errorf("dead letters of reason %s: got %d, want %d", reason, c.DeadLetters[reason], want)
		}
		damaged -= c.DeadLetters[reason]
	}
	if damaged != b.damaged {
		t.Errorf("dead letters of damaged messages: got %d, want %d; all: %v", damaged, b.damaged, c.DeadLetters)
	}
	if n := c.Late + c.Evicted + c.Duplicates; n != 0 {
		t.Errorf("late, evicted or duplicate rows: got %+v, want none", c)
	}
	t.Logf("rows rejected %v, dead letters %v", c.Rejected, c.DeadLetters)
}

// checkDeadLetters compares the topic with what was sent, and each message's headers with where it was sent to.
func checkDeadLetters(t *testing.T, s settings, want [][]byte) {
	origin := map[string][]byte{}
	for _, topic := range []string{s.topic("logits"), s.topic("labels")} {
		for _, m := range kafkatest.ReadAll(t, brokers, topic) {
			origin[fmt.Sprintf("%s/%d@%d", topic, m.Partition, m.Offset)] = m.Value
		}
	}
	var got [][]byte
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		got = append(got, m.Value)
		h := map[string]string{}
		for _, header := range m.Headers {
			h[header.Key] = string(header.Value)
		}
		partition, _ := strconv.Atoi(h["plumbline-partition"])
		offset, _ := strconv.ParseInt(h["plumbline-offset"], 10, 64)
		from := fmt.Sprintf("%s/%d@%d", h["plumbline-topic"], partition, offset)
		if v, ok := origin[from]; !ok || !bytes.Equal(v, m.Value) {
			t.Errorf("dead letter %d: headers name %s, which is there: %v, with the same bytes: %v", m.Offset, from, ok,
				bytes.Equal(v, m.Value))
		}
		if h["plumbline-reason"] == "" {
			t.Errorf("dead letter of %s: no reason", from)
		}
	}
	slices.SortFunc(got, bytes.Compare)
	want = slices.Clone(want)
	slices.SortFunc(want, bytes.Compare)
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %d dead letters, want %d with the bytes as they were sent", len(got), len(want))
	}
}
