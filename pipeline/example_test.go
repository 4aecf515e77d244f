package pipeline_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
)

// rowsSeen is an operator that counts rows. Its state is in the shard's checkpoints.
type rowsSeen struct{ n uint64 }

func (o *rowsSeen) Process(_ context.Context, b *arrowio.Batch, emit pipeline.Emit) (pipeline.Rejects, error) {
	for i := range b.N {
		if b.Good(i) {
			o.n++
		}
	}
	return emit(b)
}

func (o *rowsSeen) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }

func (o *rowsSeen) State() pipeline.State { return o }

func (o *rowsSeen) AppendState(dst []byte) ([]byte, error) {
	return binary.LittleEndian.AppendUint64(dst, o.n), nil
}

func (o *rowsSeen) RestoreState(src []byte) error {
	if len(src) != 8 {
		return fmt.Errorf("rows seen: %d bytes, want 8", len(src))
	}
	o.n = binary.LittleEndian.Uint64(src)
	return nil
}

var errCrash = errors.New("crash")

// records is a source over a slice. It fails before the record at crashAt.
type records struct {
	all         []pipeline.Record
	at, crashAt int64
}

func (s *records) Next(context.Context) (pipeline.Record, error) {
	switch {
	case s.at == s.crashAt:
		return pipeline.Record{}, errCrash
	case s.at == int64(len(s.all)):
		return pipeline.Record{}, io.EOF
	}
	s.at++
	return s.all[s.at-1], nil
}

func (s *records) Commit(context.Context, map[pipeline.Input]int64) error { return nil }
func (s *records) CaughtUp() bool                                         { return s.at == int64(len(s.all)) }
func (s *records) Close() error                                           { return nil }

// discard is a sink that loses everything.
type discard struct{}

func (discard) Write(context.Context, []pipeline.Message) error { return nil }
func (discard) Close() error                                    { return nil }

// An operator of one's own in a shard without Kafka. Run ends in the middle, as in a crash, and begins again: the state
// is that of the last checkpoint, and so is the place from which records are read, so each row is counted once.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	var rs []pipeline.Record
	for i := range int64(100) {
		value, err := arrowio.EncodePredictions(arrowio.Columns{Model: "m", IDs: []string{fmt.Sprint(i)}, K: 2,
			Logits: []float32{1, 2}})
		if err != nil {
			panic(err)
		}
		rs = append(rs, pipeline.Record{Topic: "logits", Offset: i, Time: (i + 1) * int64(time.Second), Value: value})
	}
	const pane = int64(10 * time.Second)
	var op *rowsSeen
	build := func() (pipeline.Registered, error) {
		op = &rowsSeen{}
		counts := pipeline.NewCounts()
		s := pipeline.NewShard(pipeline.ShardSpec{
			Inputs:         1, // no labels topic
			PaneLength:     pane,
			Watermark:      pipeline.NewWatermark(1, int64(time.Second)),
			Decoder:        arrowio.NewDecoder(arrowio.Options{}),
			Stages:         []pipeline.Stage{{Name: "rows_seen", Operator: op, Version: 1}},
			CheckpointRows: 30,
			Host: pipeline.Host{Out: pipeline.NewOut(counts), Outbox: pipeline.NewOutbox(0, 1, pane, 1),
				Counts: counts, Log: slog.New(slog.DiscardHandler)},
		})
		return s.ForRun(), nil
	}
	run := pipeline.Runner{Group: "example", Store: &dirstore.Store{Dir: dir, Keep: 2}, Sink: discard{},
		Interval: time.Hour, Log: slog.New(slog.DiscardHandler)}
	for _, crashAt := range []int64{70, -1} {
		open := func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
			from := max(next[pipeline.Logits], 0) // -1 is the start
			fmt.Println("reads from record", from)
			return pipeline.Opened{Source: &records{all: rs, at: from, crashAt: crashAt}}, nil
		}
		fmt.Println("ends with", pipeline.Run(context.Background(), run, build, open))
	}
	fmt.Println(op.n, "rows seen")
	// Output:
	// reads from record 0
	// ends with shard-00000: read: crash
	// reads from record 60
	// ends with <nil>
	// 100 rows seen
}
