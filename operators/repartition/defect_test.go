package repartition_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/inputs"
)

// atHand has all records at hand.
type atHand struct {
	records   []pipeline.Record
	committed int64
}

func (s *atHand) Next(context.Context) (pipeline.Record, error) {
	if len(s.records) == 0 {
		return pipeline.Record{}, io.EOF
	}
	r := s.records[0]
	s.records = s.records[1:]
	return r, nil
}
func (s *atHand) Buffered() bool { return len(s.records) > 0 }
func (s *atHand) CaughtUp() bool { return len(s.records) == 0 }
func (s *atHand) Close() error   { return nil }
func (s *atHand) Commit(_ context.Context, next map[pipeline.Input]int64) error {
	s.committed = next[pipeline.Logits]
	return nil
}

type toShard struct {
	t *testing.T
	s *oneShard
}

func (k toShard) Write(_ context.Context, ms []pipeline.Message) error {
	for _, m := range ms {
		if len(m.Value) > 0 {
			k.s.take(k.t, []pipeline.Message{m})
		}
	}
	return nil
}
func (toShard) Close() error { return nil }

// TestDefectOfOne: record 3 of six, which goes alone, panics twice, and no more then.
func TestDefectOfOne(t *testing.T) {
	got := ids{}
	k := toShard{t, newOneShard(got)}
	next := int64(0)
	for attempt := range 3 {
		d, err := inputs.New(inputs.Config{Format: "json"}, inputs.Options{MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		counts := pipeline.NewCounts()
		rs := mixedRecords(6)
		rs[3].Ahead = true // so it goes alone
		c := repartition.New(repartition.Config{Input: pipeline.Logits, Topic: "z-json", Of: 1, Targets: 1,
			Decode: arrowio.Options{MaxMessageBytes: 1 << 20}, Together: translated{d},
			Translate: func(r *pipeline.Record) ([][]byte, error) {
				if r.Offset == 3 && attempt < 2 {
					panic("a defect")
				}
				return d.Decode(inputRecord(r))
			}}, next, pipeline.NewOut(counts), counts)
		src := &atHand{records: rs[next:], committed: next}
		y := &pipeline.Relay{Name: "r", Source: src, Convert: c, Sink: k, Input: pipeline.Logits, Next: next,
			Interval: time.Second, Log: slog.New(slog.DiscardHandler), Counts: counts, Status: &pipeline.RelayStatus{}}
		err = y.Run(t.Context())
		t.Logf("attempt %d from %d: %v; committed %d", attempt, next, err, src.committed)
		next = src.committed
	}
	checkOnce(t, got, 6)
}
