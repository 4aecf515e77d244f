package recall

import (
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// snapshot is that of a minute.
func snapshot(minute int) *record.Snapshot {
	at := record.At(time.Date(2024, 3, 5, 12, minute, 0, 0, time.UTC).UnixNano())
	return &record.Snapshot{Schema: 1, Model: "m", Version: "1", At: at,
		Window: record.Window{Name: "w", Kind: "rows", End: at}}
}

// TestHistoryIsFilledUpOnce: after the last of the tasks that restore has shown what it remembers, the older snapshots
// of its series come from the topic; what is no snapshot is left out. A task that comes back to a history that lacks
// nothing has it filled up no more.
func TestHistoryIsFilledUpOnce(t *testing.T) {
	const topic = "snapshots"
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, topic)
	written := []kafka.Message{{Topic: topic, Value: []byte("no snapshot")}}
	for minute := range 3 {
		value, err := json.Marshal(snapshot(minute))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, kafka.Message{Topic: topic, Value: value})
	}
	kafkatest.Write(t, brokers, written...)
	cfg := config.Default().Kafka
	cfg.Brokers = brokers
	client, _, err := kafkaclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	past := history.New(history.Config{})
	past.Share(func(string) int { return 0 })
	r := New(Config{History: past, Kafka: cfg, Topic: topic, Show: func(rec any) {
		switch s := rec.(type) {
		case *record.Snapshot:
			past.AddSnapshot(*s)
		case *record.Alert:
			past.AddAlert(*s)
		}
	}, Read: kafkaio.TailSpec{Client: client, MaxBytes: cfg.FetchMax, Log: slog.New(slog.DiscardHandler)}})
	go r.Run(t.Context())
	begun := make(chan struct{}, 2)
	remembers := func(until <-chan struct{}, minutes ...int) iter.Seq2[*record.Snapshot, error] {
		return func(yield func(*record.Snapshot, error) bool) {
			for _, minute := range minutes {
				if !yield(nil, errors.New("damaged")) || !yield(snapshot(minute), nil) {
					return
				}
			}
			begun <- struct{}{}
			<-until
		}
	}
	shown := func() int {
		all, _ := past.Snapshots(history.SnapshotKey{Model: "m", Version: "1", Window: "w"}, 0)
		return len(all)
	}
	first, second := make(chan struct{}), make(chan struct{})
	r.Restored(0, []any{&record.Alert{Model: "m", Version: "1", Rule: "r", State: "firing", At: record.At(1)}},
		remembers(first, 3))
	if len(past.Alerts("m", "1", 0)) != 1 {
		t.Error("what a task has decided is not shown before it goes on")
	}
	<-begun
	r.Restored(0, nil, remembers(second)) // of which it lacks nothing by itself
	close(first)
	<-begun // and so the first has shown all
	if !r.lacks || len(r.due) != 0 || shown() != 1 {
		t.Error("the history is filled up while a task restores")
	}
	close(second)
	eventually.True(t, "the older snapshots are there", func() bool { return shown() == 4 })
	r.Restored(0, nil, remembers(first))
	eventually.True(t, "the task has shown what it remembers", func() bool { return r.wait.Load() == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) != 0 || r.lacks {
		t.Error("a history that lacks nothing is filled up again")
	}
}
