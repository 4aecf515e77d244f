//go:build integration

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/feed"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
)

// lostState is a scenario of a state, or of records, that are gone: a deployment reads a first part of a stream, is
// stopped, something is lost, and it goes on with a second part.
type lostState struct {
	input string
	// before is what a deployment did before states had epochs.
	before string
	store  string // of checkpoints
	lose   func(t *testing.T, w *epochWorld)
	task   string // to be reset; "" = the process starts as it is
	from   string // "" = committed
	says   string // in the refusal
	// What the numbers must be those of.
	first, second bool // parts
	waited        bool // the labels of the second part that belong to predictions of the first
	but           int  // but for those of this shard; 0 = of all
	silent        bool // these labels are not sent at all
	lost          bool // the snapshot says that rows may be missing
}

func init() {
	for name, sc := range map[string]lostState{
		"shard": {
			input: "the checkpoints of one shard are removed", store: "directory", task: "shards/1",
			before: "its messages were dropped as repeats, and no number moved any more; drained, 0 unaccounted",
			says:   "its group has read", first: true, second: true, waited: true, but: 1, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remove("shards/shard-00001"); w.forget(false) },
		},
		"model": {
			input: "the checkpoints of the model's task are removed", store: "directory", task: "models/",
			before: "the task read the panes once more and began its revisions anew, without a word",
			says:   "its group has read", second: true, silent: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remove(fmt.Sprintf("models/model-%05d", w.home())) },
		},
		"directory": {
			input: "checkpoints.dir is empty", store: "directory", task: "all",
			before: "everything new was dropped as repeats; ready, drained, 0 unaccounted",
			says:   "its group has read", second: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remove("."); w.forget(false) },
		},
		"directory-earliest": {
			input: "checkpoints.dir is empty, and all is counted once more", store: "directory", task: "all",
			from: "earliest", before: "as above", says: "its group has read",
			first: true, second: true, waited: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remove(".") },
		},
		"topic-store": {
			input: "the checkpoints topic is deleted and made again", store: "topic", task: "all",
			before: "all was read once more; where retention had removed records, as with a directory",
			says:   "its group has read", second: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remake("checkpoints") },
		},
		"remade": {
			input: "logits and labels are deleted and made again, longer than they were", store: "directory",
			task: "all", before: "the first records of the new topics were never read, without a word",
			says: "deleted and made again", first: true, second: true, waited: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.remake("logits", "labels") },
		},
		"retention": {
			input: "retention passes the checkpoints", store: "directory", task: "all",
			before: "the process ended, and no command let it go on",
			says:   "is not in the log", first: true, second: true, waited: true, lost: true,
			lose: func(t *testing.T, w *epochWorld) { w.forget(true) },
		},
	} {
		hostile["epoch-"+name] = func(t *testing.T, a *attack) { sc.run(t, a) }
	}
}

const epochConfig = oneDay + `models: [{name: net, classes: 10}]
`

// epochWorld is a deployment and its stream.
type epochWorld struct {
	t     *testing.T
	s     settings
	model string
	rows  *feed.Rows
}

func newEpochWorld(t *testing.T, store string) *epochWorld {
	w := &epochWorld{t: t, model: "net", rows: loadRows(t, "c10_chenyaofo19_logits.npz", "resnet20", 10)}
	w.s = configureEdited(t, epochConfig, "checkpoints:", "checkpoints:\n  store: "+store, "  deadletter:",
		"  checkpoints: "+topicPrefix(t)+".checkpoints\n  deadletter:")
	return w
}

// home is the panes partition of the model.
func (w *epochWorld) home() int { return murmur.PartitionOf([]byte("net"), partitions) }

func (w *epochWorld) remove(dir string) {
	if err := os.RemoveAll(filepath.Join(filepath.Dir(w.s.file), "state", w.s.prefix, dir)); err != nil {
		w.t.Fatal(err)
	}
}

// named is the name of a topic in the configuration file.
func (w *epochWorld) named(key string) string {
	text, err := os.ReadFile(w.s.file)
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "  "+key+": ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

func (w *epochWorld) remake(keys ...string) {
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	for _, key := range keys {
		name := w.named(key)
		res, err := client.DeleteTopics(w.t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{name}})
		if err != nil || res.Errors[name] != nil {
			w.t.Fatalf("delete %s: %v, %v", name, err, res)
		}
	}
	for _, key := range keys { // a deleted topic goes in its own time, and could be taken for the new one until then
		within(w.t, 20*time.Second, "deleted topics", func() error {
			m, err := client.Metadata(w.t.Context(), &kafka.MetadataRequest{Topics: []string{w.named(key)}})
			if err == nil && !errors.Is(m.Topics[0].Error, kafka.UnknownTopicOrPartition) {
				err = fmt.Errorf("%s is still there", key)
			}
			return err
		})
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		if exec.Command(binary, "topics", "create", "-c", w.s.file).Run() == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("topics are not made again")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// forget moves the logs' starts to their ends, as retention does, behind a message that nobody will read where unread
// is set.
func (w *epochWorld) forget(unread bool) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrDeleteRecordsRequest()
	for _, key := range []string{"logits", "labels"} {
		topic := kmsg.NewDeleteRecordsRequestTopic()
		topic.Topic = w.s.topic(key)
		var msgs []kafka.Message
		for p := range int32(partitions) {
			msgs = append(msgs, kafka.Message{Topic: w.s.topic(key), Partition: int(p), Value: []byte("gone unread")})
			part := kmsg.NewDeleteRecordsRequestTopicPartition()
			part.Partition, part.Offset = p, -1
			topic.Partitions = append(topic.Partitions, part)
		}
		if unread {
			kafkatest.Write(w.t, brokers, msgs...)
		}
		req.Topics = append(req.Topics, topic)
	}
	for _, shard := range client.RequestSharded(w.t.Context(), req) {
		if shard.Err != nil {
			w.t.Fatalf("delete records: %v", shard.Err)
		}
	}
}

const (
	epochRows    = 2000 // of a part
	epochWaiting = 100
	epochPart    = time.Hour // from the start of one part to that of the next
)

// part sends a part of the stream, and closes it in event time.
func (w *epochWorld) part(number int) {
	src, err := w.rows.Open(feed.Order{})
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := feed.New(src, feed.Options{
		Model: "net", Version: "1", Partitions: partitions, EventRate: 10,
		Start: start.Add(time.Duration(number) * (epochPart - epochRows*time.Second/10)).UnixNano(),
		Batch: 4 + 4*(1-number), Seed: 5, Skip: int64(number) * epochRows, Limit: epochRows,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	msgs, _, _ := feedMessages(w.t, f, w.s, math.MaxInt)
	kafkatest.Write(w.t, brokers, msgs...)
}

// waiting are predictions at the end of the first part, or their labels at the start of the second.
func (w *epochWorld) waiting(labels bool, but int) {
	by := make([]arrowio.Columns, partitions)
	classes := make([][]int32, partitions)
	at := start.Add(10 * time.Minute)
	if labels {
		at = start.Add(epochPart)
	}
	for i := range epochWaiting {
		id := fmt.Sprintf("wait-%d", i)
		c := &by[murmur.PartitionOf([]byte(id), partitions)]
		c.Model, c.Version, c.K = "net", "1", 10
		c.IDs, c.TS = append(c.IDs, id), append(c.TS, at.UnixNano())
		row := len(w.rows.Label) - 1 - i
		c.Logits = append(c.Logits, w.rows.Scores[row*10:row*10+10]...)
		p := murmur.PartitionOf([]byte(id), partitions)
		classes[p] = append(classes[p], w.rows.Label[row])
	}
	var msgs []kafka.Message
	for p, c := range by {
		if but != 0 && p == but {
			continue
		}
		topic := "logits"
		value, err := arrowio.EncodePredictions(c)
		if labels {
			topic = "labels"
			value, err = arrowio.EncodeLabels("net", "1", c.IDs, c.TS, classes[p])
		}
		if err != nil {
			w.t.Fatal(err)
		}
		msgs = append(msgs, kafka.Message{Topic: w.s.topic(topic), Partition: p, Value: value, Time: at})
	}
	kafkatest.Write(w.t, brokers, msgs...)
}

// closeAt promises that nothing before a time follows.
func (w *epochWorld) closeAt(at time.Time) {
	var msgs []kafka.Message
	for p := range partitions {
		for _, topic := range []string{"logits", "labels"} {
			msgs = append(msgs, kafka.Message{Topic: w.s.topic(topic), Partition: p, Time: at, Headers: []kafka.Header{
				{Key: pipeline.WatermarkHeader, Value: strconv.AppendInt(nil, at.UnixNano(), 10)}}})
		}
	}
	kafkatest.Write(w.t, brokers, msgs...)
}

// send sends what a scenario's parts are.
func (w *epochWorld) send(part int, late bool, but int) {
	if part == 0 {
		w.part(0)
		w.waiting(false, 0)
		w.closeAt(start.Add(epochPart / 2))
		return
	}
	if late {
		w.waiting(true, but)
	}
	w.part(1)
	w.closeAt(start.Add(2 * epochPart))
}

// drained waits until a process has taken what was sent since it started.
func (w *epochWorld) drained(p *process, watermark time.Time) status {
	w.t.Helper()
	var st status
	p.wait(2*time.Minute, "drain up to "+watermark.String(), func() bool {
		var err error
		st, err = p.status()
		return err == nil && st.Drained && st.Watermark == watermark.UTC().Format(time.RFC3339Nano)
	})
	return st
}

// day is the window of everything.
func (w *epochWorld) day() record.Snapshot {
	w.t.Helper()
	for _, s := range latest(w.t, w.s) {
		if s.Model == w.model && s.Slice == "" && s.Window.Name == "day" {
			return s
		}
	}
	w.t.Fatal("no snapshot of " + w.model)
	return record.Snapshot{}
}

func (sc *lostState) run(t *testing.T, a *attack) {
	a.Input, a.Before = sc.input, sc.before
	want := sc.reference(t)
	w := newEpochWorld(t, sc.store)
	p := run(t, w.s)
	w.send(0, false, 0)
	w.drained(p, start.Add(epochPart/2))
	p.stop()
	sc.lose(t, w)
	w.send(1, !sc.silent, 0)
	if os.Getenv("PLUMBLINE_BEFORE") != "" { // of a build without epochs: what it does
		p = run(t, w.s)
		time.Sleep(15 * time.Second)
		st, err := p.status()
		got := w.day()
		t.Fatalf("status %+v, %v\nsnapshot of %d predictions, %d labelled; want %d, %d", st, err, got.Predictions,
			got.Labelled, want.Predictions, want.Labelled)
	}
	sc.refused(t, w)
	task := sc.task
	if task == "models/" {
		task += strconv.Itoa(w.home())
	}
	reset := []string{"state", "reset", "-c", w.s.file, "--task", task, "--by", "ann", "--why", "a test"}
	if sc.from != "" {
		reset = append(reset, "--from", sc.from)
	}
	t.Logf("%s", runOK(t, reset...))
	sc.refused(t, w) // without --accept-loss nothing was changed
	runOK(t, append(reset, "--accept-loss")...)
	began := time.Now()
	p = run(t, w.s)
	st := w.drained(p, start.Add(2*epochPart))
	a.Lag, a.RSS = time.Since(began).Round(100*time.Millisecond).String(), peakRSS(p.cmd.Process.Pid)
	p.stop()
	got := w.day()
	if a.Exact = sc.same(t, got, want); !a.Exact {
		t.Errorf("not the same: the snapshot is of %s, the process was drained with %+v", got.At, st)
	}
	sc.told(t, w, got)
}

// reference is the snapshot of a deployment that lost nothing and got only what must count.
func (sc *lostState) reference(t *testing.T) record.Snapshot {
	w := newEpochWorld(t, "directory")
	p := run(t, w.s)
	if sc.first {
		w.send(0, false, 0)
		w.drained(p, start.Add(epochPart/2))
	}
	if sc.second {
		w.send(1, sc.waited, sc.but)
		w.drained(p, start.Add(2*epochPart))
	}
	p.stop()
	return w.day()
}

// refused starts the process, which must say what is wrong and must not be ready.
func (sc *lostState) refused(t *testing.T, w *epochWorld) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(binary, "run", "-c", w.s.file)
	file := filepath.Join(t.TempDir(), "refused.log")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		b, _ := os.ReadFile(file)
		log.Reset()
		log.Write(b)
		if strings.Contains(log.String(), sc.says) && strings.Contains(log.String(), "plumbline state reset") {
			if res, err := http.Get("http://" + w.s.listen + "/-/ready"); err == nil {
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					t.Error("the process is ready")
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q and name the command:\n%s", sc.says, tail(b))
		}
	}
}

// same compares what must be exact.
func (sc *lostState) same(t *testing.T, got, want record.Snapshot) bool {
	t.Helper()
	if got.Predictions != want.Predictions || got.Labelled != want.Labelled {
		t.Errorf("%d predictions, %d labelled; want %d, %d", got.Predictions, got.Labelled, want.Predictions,
			want.Labelled)
		return false
	}
	near(t, "accuracy", got.Raw.Accuracy, want.Raw.Accuracy)
	near(t, "ece", got.Raw.ECE, want.Raw.ECE)
	near(t, "nll", got.Raw.NLL, want.Raw.NLL)
	near(t, "brier", got.Raw.Brier, want.Raw.Brier)
	return !t.Failed()
}

// told checks that the loss is in the snapshot and in the history.
func (sc *lostState) told(t *testing.T, w *epochWorld, got record.Snapshot) {
	t.Helper()
	if sc.lost != (got.Lost != nil) {
		t.Errorf("the snapshot says lost: %+v, want it there: %v", got.Lost, sc.lost)
	}
	n := 0
	for _, d := range records[record.Decision](t, w.s.topic("decisions")) {
		if d.Kind == record.DecisionLoss && d.Model == w.model {
			n++
		}
	}
	if n == 0 {
		t.Error("the decisions topic does not have the loss")
	}
}
