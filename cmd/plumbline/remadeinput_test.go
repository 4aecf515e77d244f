package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestInputMadeAgain deletes a topic of inputs under a process that reads it, and makes it again, in one partition
// longer than it was: of both topics every row counts once, before a restart and after it.
func TestInputMadeAgain(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	const was, more = 300, 500
	brokers := kafkatest.Start(t)
	_, cfg := deploy(t, fmt.Sprintf(`
kafka: {brokers: [%q], partitions: 2}
topics: {labels: ''}
inputs: [{topic: rows, model: m}]
models: [{name: m, classes: 2}]
http: {listen: ""}
checkpoints: {dir: %q, interval: 100ms}
`, brokers[0], t.TempDir()))
	all, err := parseStages("all")
	if err != nil {
		t.Fatal(err)
	}
	rt, stop := start(t, cfg, all)
	kafkatest.Write(t, brokers, jsonRows(0, was, 2)...)
	counted(t, rt, was)
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}
	res, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{"rows"}})
	if err != nil || res.Errors["rows"] != nil {
		t.Fatalf("delete: %v, %v", err, res)
	}
	kafkatest.CreateTopics(t, brokers, 2, "rows")
	kafkatest.Write(t, brokers, jsonRows(was, more, 1)...)
	counted(t, rt, was+more)
	for _, f := range rt.Status().Failing {
		if strings.Contains(f.Cause, "lost") {
			t.Errorf("no record was lost: %s", f.Cause)
		}
	}
	stop()
	rt, stop = start(t, cfg, all)
	defer stop()
	kafkatest.Write(t, brokers, jsonRows(was+more, 1, 1)...)
	counted(t, rt, was+more+1)
}

// jsonRows are n messages of one row each, with labels, over some partitions of a topic.
func jsonRows(from, n, partitions int) []kafka.Message {
	ms := make([]kafka.Message, n)
	for i := range ms {
		at := time.Unix(1_700_000_000+int64(from+i), 0)
		ms[i] = kafka.Message{Topic: "rows", Partition: i % partitions, Time: at, Value: fmt.Appendf(nil,
			`{"id": "r%d", "ts": %d, "logits": [0.5, %.1f], "label": %d}`, from+i, at.Unix(), float64(i%10)/5, i%2)}
	}
	return ms
}

// counted waits until so many predictions were taken and everything is drained; more never come.
func counted(t *testing.T, rt *engine.Engine, want int64) {
	t.Helper()
	var got any
	defer func() {
		if t.Failed() {
			t.Logf("predictions: %v, failing %v", got, rt.Status().Failing)
		}
	}()
	st := eventually.Get(t, fmt.Sprintf("%d predictions", want), func() (*engine.ProcessStatus, bool) {
		st := rt.Status()
		got = st.Counts["predictions"]
		n, _ := got.(int64)
		return st, n >= want && st.Drained
	})
	if st.Counts["predictions"] != want || st.Counts["duplicates"] != int64(0) {
		t.Errorf("want %d predictions: %v", want, st.Counts)
	}
}
