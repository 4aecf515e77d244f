// Package recall shows what restored model tasks remember, and fills the history up with the older snapshots, which
// they do not. It must not know how tasks run.
package recall

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
)

// Config says what a Recall needs.
type Config struct {
	Show    func(rec any) // to whom the records are of this process from now on
	History *history.History
	Kafka   kafkaio.Config
	Topic   string           // of snapshots
	Read    kafkaio.TailSpec // how it is read
}

// Recall shows what tasks remember, one task at a time.
type Recall struct {
	Config
	mu    sync.Mutex
	wait  atomic.Int32  // tasks
	lacks bool          // the history lacks a task's past
	due   chan struct{} // to fill the history up
}

// New returns a recall to which no task has come.
func New(c Config) *Recall { return &Recall{Config: c, due: make(chan struct{}, 1)} }

// Restored shows the records in the state of a restored task, which is of this process from then on. Snapshots are
// many, and the history sorts them whenever they come: they are shown in the background, one task's after the other's,
// while tasks still restore. The last of the tasks has the history filled up.
func (r *Recall) Restored(p int, decided []any, snapshots iter.Seq2[*record.Snapshot, error]) {
	for _, rec := range decided {
		r.Show(rec)
	}
	lacks := r.History.Return(p)
	r.wait.Add(1)
	go func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lacks = r.lacks || lacks
		if err := r.showAll(snapshots); err != nil {
			r.Read.Log.Error("snapshots of a checkpoint cannot be shown", "err", err)
		}
		if r.wait.Add(-1) == 0 && r.lacks {
			r.lacks = false
			select {
			case r.due <- struct{}{}:
			default: // it is to be filled up already
			}
		}
	}()
}

// pastSnapshots is how far back fillUp looks in each partition, in offsets: an hour of one model by default.
const pastSnapshots = 2048

// pastBytes is the most bytes of a snapshot that is read back; with 3600 bins it has fewer. Decoded, one of a stranger
// is twenty times as large.
const pastBytes = 2 << 20

// Run fills the history up whenever it is due, apart from the tasks: what they remember is shown and they may leave
// while brokers do not let the topic be read. What fails is tried again: brokers return, and rights are given.
func (r *Recall) Run(ctx context.Context) {
	pause, said := backoff.New(time.Second, time.Minute), false
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.due:
		case <-again:
		}
		again = nil
		err := r.fillUp(ctx)
		if err == nil || ctx.Err() != nil {
			pause.Reset()
			said = false
			continue
		}
		again = time.After(pause.Next())
		if !said {
			r.Read.Log.Info("the page shows no snapshots of before this process until they can be read", "topic",
				r.Topic, "err", kafkaclient.Explain(ctx, r.Kafka, err))
		}
		said = true
	}
}

// fillUp adds, to the series that there are, the snapshots of before this process had them: a state has only the
// latest. Without them all that is shown still holds, and begins now.
func (r *Recall) fillUp(ctx context.Context) error {
	n, err := kafkaio.Partitions(ctx, r.Read.Client, r.Topic)
	for p := 0; p < n && err == nil; p++ {
		past := kafkaio.Latest{Topic: r.Topic, Partition: p, Offsets: pastSnapshots}
		err = past.Read(ctx, r.Read, func(rec *pipeline.Record) {
			if err := r.addPast(rec); err != nil {
				r.Read.Log.Debug("record is no snapshot", "topic", r.Topic, "partition", p, "offset", rec.Offset,
					"err", err)
			}
		})
	}
	return err
}

// addPast adds a record of the topic to the history.
func (r *Recall) addPast(rec *pipeline.Record) (err error) {
	defer pipeline.Caught(&err)
	if len(rec.Value) > pastBytes {
		return fmt.Errorf("%d bytes, at most %d are read back", len(rec.Value), pastBytes)
	}
	s, err := record.Decode[record.Snapshot](rec.Value)
	if err == nil {
		r.History.AddPast(s)
	}
	return err
}

// showAll shows the snapshots that can be decoded.
func (r *Recall) showAll(snapshots iter.Seq2[*record.Snapshot, error]) (err error) {
	defer pipeline.Caught(&err)
	for s, err := range snapshots {
		if err != nil {
			r.Read.Log.Error("snapshot of a checkpoint cannot be shown", "err", err)
			continue
		}
		r.Show(s)
	}
	return nil
}
