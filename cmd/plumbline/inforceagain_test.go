package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestLostCalibratorsComeBack makes the calibrators topic again, under a process and while none runs. Another that only
// follows the topic has the calibrator in force without a new decision, and the list of decisions has it once.
func TestLostCalibratorsComeBack(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	_, cfg := deploy(t, fmt.Sprintf(`
kafka: {brokers: [%q], partitions: 1}
topics: {labels: ''}
inputs: [{topic: rows, model: m}]
models: [{name: m, classes: 2}]
event_time: {idle_timeout: 500ms}
http: {listen: ""}
checkpoints: {dir: %q, interval: 100ms}
`, brokers[0], t.TempDir()))
	all := engine.Stages{Shards: true, Models: true, Repartition: true}
	rt, stop := start(t, cfg, all)
	kafkatest.Write(t, brokers, overconfident(2000)...)
	revision := func(rt *engine.Engine) int {
		f, _, _ := engine.LatestCalibrators{Engine: rt}.Latest("m", "0")
		return f.Revision
	}
	counted(t, rt, 2000)
	want := revision(rt)
	hash := rt.Status().StateHash
	if want == 0 {
		t.Fatalf("no calibrator is in force: %+v", rt.Status())
	}
	makeAgain := func() {
		remove(t, brokers, cfg.Topics.Calibrators)
		kafkatest.CreateTopics(t, brokers, 1, cfg.Topics.Calibrators)
	}
	follows := func() {
		t.Helper()
		other := cfg
		other.Join.Dir = t.TempDir()
		follower, end := start(t, other, engine.Stages{Shards: true})
		defer end()
		eventually.True(t, "the calibrator is in force", func() bool { return revision(follower) == want })
	}
	defer func() { stop() }()
	follows()
	makeAgain()
	follows()
	stop()
	makeAgain()
	rt, stop = start(t, cfg, all)
	follows()
	if got := drained(t, rt); got.StateHash != hash {
		t.Errorf("state hash %s, was %s", got.StateHash, hash)
	}
	published := 0
	for _, c := range rt.History.Calibrators("m", "0", 0) {
		if c.Published && c.Revision == want {
			published++
		}
	}
	if published != 1 {
		t.Errorf("revision %d is listed %d times", want, published)
	}
}

// TestLostAlertsComeBack makes the alerts topic again under a process: an alert that goes on firing is in the new one,
// since an Alertmanager takes for resolved what nobody speaks of any more. Webhooks are told what it had before anybody
// has seen that it is another one.
func TestLostAlertsComeBack(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	var mu sync.Mutex
	told := ""
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		told += string(body) + "\n"
	}))
	defer hook.Close()
	brokers := kafkatest.Start(t)
	_, cfg := deploy(t, fmt.Sprintf(`
kafka: {brokers: [%q], partitions: 1}
topics: {labels: ''}
inputs: [{topic: rows, model: m}]
models: [{name: m, classes: 2}]
event_time: {idle_timeout: 500ms}
refit: {method: none}
http: {listen: ""}
checkpoints: {dir: %q, interval: 100ms}
notify: {webhooks: [{url: %q}]}
`, brokers[0], t.TempDir(), hook.URL))
	rt, stop := start(t, cfg, engine.Stages{Shards: true, Models: true, Repartition: true})
	defer func() { stop() }()
	kafkatest.Write(t, brokers, overconfident(2000)...)
	counted(t, rt, 2000)
	toldOf := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(told, text)
	}
	eventually.True(t, "the webhook is told", func() bool { return toldOf("calibration-raw") })
	fires := func() (n int) {
		for _, m := range kafkatest.ReadAll(t, brokers, cfg.Topics.Alerts) {
			var a record.Alert
			if err := json.Unmarshal(m.Value, &a); err != nil {
				t.Fatal(err)
			}
			if a.Rule == "calibration-raw" && a.State == "firing" {
				n++
			}
		}
		return n
	}
	eventually.True(t, "the alert fires", func() bool { return fires() > 0 })
	remove(t, brokers, cfg.Topics.Alerts)
	kafkatest.CreateTopics(t, brokers, 1, cfg.Topics.Alerts)
	kafkatest.Write(t, brokers, kafka.Message{Topic: cfg.Topics.Alerts, Key: []byte("other"),
		Value: []byte(`{"schema":1,"model":"other","version":"1","rule":"news","state":"firing"}`)})
	eventually.True(t, "the new topic has the alert", func() bool { return fires() > 0 })
	eventually.True(t, "the webhook is told what came first", func() bool { return toldOf(`"rule":"news"`) })
}

// overconfident are rows of which the model is sure and half of the time wrong.
func overconfident(n int) []kafka.Message {
	ms := make([]kafka.Message, n)
	for i := range ms {
		at := time.Unix(1_700_000_000+int64(i), 0)
		ms[i] = kafka.Message{Topic: "rows", Time: at, Value: fmt.Appendf(nil,
			`{"id": "r%d", "ts": %d, "logits": [0, 6], "label": %d}`, i, at.Unix(), i%2)}
	}
	return ms
}
