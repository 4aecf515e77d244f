package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/registry"
	"github.com/plumbline/plumbline/web"
)

// moment is a time of a test.
func moment(text string) record.Time {
	t, err := record.ParseTime(text)
	if err != nil {
		panic(err)
	}
	return t
}

// inForce is the record of a revision of model m/1, version v; the temperature tells them apart.
func inForce(revision int, temperature float64) record.Calibrator {
	return record.Calibrator{Schema: 1, Model: "m/1", Version: "v", Revision: revision, Published: true,
		Stage: record.StageFull, Reason: "period", Outcome: "published: temperature",
		DecidedAt:  moment(fmt.Sprintf("2026-01-01T00:00:%02dZ", revision)),
		Calibrator: fmt.Appendf(nil, `{"version":1,"method":"temperature","temperature":%v}`, temperature)}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decisionOf(t *testing.T, c record.Calibrator) []byte {
	t.Helper()
	return encoded(t, record.NewDecision(&c, encoded(t, c)))
}

// openHistory gives an engine a database with some records in it.
func openHistory(t *testing.T, rt *engine.Engine, records ...record.Calibrator) {
	t.Helper()
	rt.Config.History.Path = t.TempDir() + "/history.db"
	if err := rt.OpenPast(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Past.Store.Close() })
	var es []registry.Entry
	for _, c := range records {
		e, ok, err := registry.FromDecisions(&pipeline.Record{Value: decisionOf(t, c)})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		es = append(es, e)
	}
	if _, err := rt.Past.Store.Put(t.Context(), registry.Place{Topic: "x"}, 0, 9, es); err != nil {
		t.Fatal(err)
	}
}

// TestRevisionWhereverItIs: an order for a revision has the calibrator of that revision, be it in memory, in the
// database, on the compacted topic or on that of decisions; one that is nowhere is refused, with those that there are;
// and where a place does not answer, nobody says that there is none.
func TestRevisionWhereverItIs(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	openHistory(t, rt, inForce(1, 1.1), inForce(2, 1.2), record.Calibrator{Model: "m/1", Version: "w",
		DecidedAt: moment("2026-01-01T00:00:00Z"), Outcome: "no change"})
	rt.History.AddCalibrator(inForce(6, 1.6))
	topics := map[string][]record.Calibrator{
		rt.Config.Topics.Calibrators: {inForce(4, 1.39), inForce(4, 1.4)},
		rt.Config.Topics.Decisions: {inForce(8, 1.8), inForce(4, 9),
			{Model: "m/1", Version: "v", Revision: 9, Outcome: "no change"},
			{Model: "m/1", Version: "w", Revision: 10, Published: true, Calibrator: []byte(`{}`)},
			{Model: "m/1", Version: "v", Revision: 11, Stage: record.StageCanary, Published: true,
				Calibrator: []byte(`{}`)}},
	}
	var broken error
	log := &orderLog{}
	taker := engine.OrderTaker{Engine: rt, Sink: log, Scan: func(_ context.Context, topic, key string,
		take func([]byte)) error {
		of := map[string]string{rt.Config.Topics.Calibrators: "m/1/v", rt.Config.Topics.Decisions: "m/1"}[topic]
		if key != of && key != "m/1/z" {
			t.Errorf("key %q of topic %s, want %q", key, topic, of)
		}
		for _, c := range topics[topic] {
			if topic == rt.Config.Topics.Decisions {
				take(decisionOf(t, c))
			} else {
				take(encoded(t, c))
			}
		}
		take([]byte("{"))
		take(nil)
		return broken
	}}
	order := func(action, version string, revision int) (string, error) {
		log.orders = nil
		_, err := taker.Order(t.Context(), web.Order{Action: action, Model: "m/1", Version: version, Revision: revision,
			By: "ann", Why: "x"})
		if len(log.orders) == 0 {
			return "", err
		}
		return string(log.orders[0].Calibrator), err
	}
	for _, action := range []string{"rollback", "pin"} {
		for revision, want := range map[int]float64{1: 1.1, 2: 1.2, 4: 1.4, 6: 1.6, 8: 1.8} {
			if got, err := order(action, "v", revision); err != nil ||
				!strings.HasSuffix(got, fmt.Sprintf(`"temperature":%v}`, want)) {
				t.Errorf("%s to revision %d has %s, %v; want %v", action, revision, got, err, want)
			}
		}
	}
	for revision, want := range map[int]string{9: "allowed are 1 to 2, 4, 6, 8:",
		11: "revision 11 of m/1/v is not in the history"} {
		if got, err := order("rollback", "v", revision); got != "" || !errors.Is(err, web.ErrOrder) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("revision %d: %s, %v; want %s", revision, got, err, want)
		}
	}
	if _, err := order("rollback", "z", 1); err == nil ||
		!strings.Contains(err.Error(), "revision 1 of m/1/z is not in the history, which has none") {
		t.Errorf("a version that is not known: %v", err)
	}
	if n := len(log.refused); n != 3 {
		t.Errorf("%d refused orders in the history, want 3", n)
	}
	broken = errors.New("no leader")
	if _, err := order("rollback", "v", 9); err == nil || errors.Is(err, web.ErrOrder) ||
		!errors.Is(err, engine.ErrUnasked) || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("topics that do not answer: %v", err)
	}
	if err := rt.Past.Store.Close(); err != nil {
		t.Fatal(err)
	}
	broken = nil
	if got, err := order("rollback", "v", 8); err != nil || got == "" {
		t.Errorf("without a database, on a topic: %s, %v", got, err)
	}
	if _, err := order("rollback", "v", 1); err == nil || errors.Is(err, web.ErrOrder) || len(log.refused) != 3 {
		t.Errorf("a database that does not answer: %v, %d refused", err, len(log.refused))
	}
}

// TestVersionFromTheDatabase: a process that has nothing of a model in memory knows its version from the database.
func TestVersionFromTheDatabase(t *testing.T) {
	rt := engine.New(config.Default(), slog.New(slog.DiscardHandler))
	openHistory(t, rt, inForce(1, 1.1))
	log := &orderLog{}
	if _, err := (engine.OrderTaker{Engine: rt, Sink: log, Scan: nil}).Order(t.Context(),
		web.Order{Action: "rollback", Model: "m/1", Revision: 1, By: "ann", Why: "x"}); err != nil ||
		len(log.orders) != 1 || log.orders[0].Version != "v" {
		t.Errorf("%v, %+v; want an order for version v", err, log.orders)
	}
}

// TestScanTopics reads the partition of a key, and of that only the records of the key.
func TestScanTopics(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 3, "decided")
	var ms []kafka.Message
	for i := range 40 {
		key := fmt.Sprint("m", i%5)
		ms = append(ms, kafka.Message{Topic: "decided", Partition: murmur.PartitionOf([]byte(key), 3),
			Key: []byte(key), Value: fmt.Append(nil, key, " ", i)})
	}
	kafkatest.Write(t, brokers, ms...)
	cfg := config.Default()
	cfg.Kafka.Brokers = brokers
	d := deployment.New(&cfg, slog.New(slog.DiscardHandler))
	if err := d.Connect(); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := d.ScanTopics(t.Context(), "decided", "m2",
		func(value []byte) { got = append(got, string(value)) }); err != nil {
		t.Fatal(err)
	}
	if want := "m2 2,m2 7,m2 12,m2 17,m2 22,m2 27,m2 32,m2 37"; strings.Join(got, ",") != want {
		t.Errorf("records %q, want %s", got, want)
	}
	if err := d.ScanTopics(t.Context(), "nothing", "m2", func([]byte) {}); err == nil {
		t.Error("a topic that is not there gave no error")
	}
}

func TestRanges(t *testing.T) {
	for want, n := range map[string][]int{"": nil, "7": {7}, "1 to 2": {1, 2}, "1, 3 to 5, 9": {1, 3, 4, 5, 9}} {
		if got := engine.Ranges(n); got != want {
			t.Errorf("ranges of %v: %q, want %q", n, got, want)
		}
	}
}
