package repartition_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/repartition"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

func oneConverter(t *testing.T, together bool, targets int, f *pipeline.Fence) *repartition.Converter {
	t.Helper()
	return converterOf(t, together, 0, repartition.Config{Of: 1, Targets: targets, Fence: f})
}

type oneShard struct {
	*pipeline.Shard
	at int64
}

func newOneShard(got ids) *oneShard {
	counts := pipeline.NewCounts()
	return &oneShard{Shard: pipeline.NewShard(pipeline.ShardSpec{ID: 0, Inputs: 1, PaneLength: 1e9,
		Watermark: pipeline.NewWatermark(1, 1e9), Decoder: arrowio.NewDecoder(arrowio.Options{}),
		Stages: []pipeline.Stage{{Name: "ids", Operator: got}},
		Host: pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts,
			Outbox: pipeline.NewOutbox(0, 1, 1e9, 1), Log: slog.New(slog.DiscardHandler)}})}
}

func (s *oneShard) take(t *testing.T, ms []pipeline.Message) {
	for _, m := range ms {
		if m.Stream != pipeline.StreamLogits {
			continue
		}
		if err := s.Take(t.Context(), pipeline.Record{Topic: "by-id", Value: m.Value, Headers: m.Headers,
			Time: m.Time, Offset: s.at}); err != nil {
			t.Fatal(err)
		}
		s.at++
	}
}

// mixedRecords have two rows each, of models of two numbers of classes: alone, such a record becomes two messages.
func mixedRecords(n int) (out []pipeline.Record) {
	for i := range n {
		out = append(out, pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Offset: int64(i), Time: 1e18,
			Value: fmt.Appendf(nil, `[{"id":"%d-two","model":"a","logits":[1,2]},`+
				`{"id":"%d-three","model":"b","logits":[1,2,3]}]`, i, i)})
	}
	return out
}

func checkOnce(t *testing.T, got ids, n int) {
	t.Helper()
	if len(got) != 2*n {
		t.Errorf("%d different rows, want %d", len(got), 2*n)
	}
	for id, k := range got {
		if k != 1 {
			t.Errorf("row %v came %d times", id, k)
		}
	}
}

// TestMixedAgain: record 2 is not committed, and is followed by the tracer, ahead, or read by another build then.
func TestMixedAgain(t *testing.T) {
	for _, how := range []string{"followed", "ahead", "old build"} {
		t.Run(how, func(t *testing.T) {
			got := ids{}
			s := newOneShard(got)
			rs := mixedRecords(4)
			c := oneConverter(t, true, 1, nil)
			for _, r := range rs[:3] {
				s.take(t, c.Take(r))
			}
			s.take(t, c.Release())
			c = oneConverter(t, how != "old build", 1, nil)
			for i, r := range rs {
				r.Alone = how == "followed" && i == 2
				r.Ahead = how == "ahead" && i == 2
				s.take(t, c.Take(r))
			}
			s.take(t, c.Release())
			checkOnce(t, got, 4)
		})
	}
}

// TestMixedCut: of record 2 the first message is written, the second is not.
func TestMixedCut(t *testing.T) {
	got := ids{}
	s := newOneShard(got)
	rs := mixedRecords(4)
	c := oneConverter(t, true, 1, nil)
	for _, r := range rs[:2] {
		s.take(t, c.Take(r))
	}
	r := rs[2]
	r.Alone = true
	s.take(t, c.Take(r)[:2]) // group of 0 and 1, then the first of two of record 2
	c = oneConverter(t, true, 1, nil)
	for _, r := range rs {
		s.take(t, c.Take(r))
	}
	s.take(t, c.Release())
	checkOnce(t, got, 4)
}

// TestMixedFence: another number of shards after records of rows of two numbers of classes.
func TestMixedFence(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			got := ids{}
			s := newOneShard(got)
			rs := mixedRecords(4)
			c := oneConverter(t, together, 1, nil)
			var last [2]int64 // offset and part of the last message that the shard took
			take := func(ms []pipeline.Message) {
				s.take(t, ms)
				for _, m := range ms {
					for _, h := range m.Headers {
						if f := strings.Split(string(h.Value), "/"); h.Key == pipeline.SourceHeader {
							last[0], _ = strconv.ParseInt(f[3], 10, 64)
							last[1], _ = strconv.ParseInt(f[4], 10, 64)
						}
					}
				}
			}
			for _, r := range rs[:3] {
				take(c.Take(r))
			}
			take(c.Release())
			mark := pipeline.Mark{Offset: last[0], Part: int32(last[1])}
			f := &pipeline.Fence{Filters: []pipeline.Filter{{Taken: []pipeline.Mark{mark}}}}
			s = newOneShard(got)
			c = oneConverter(t, together, 1, f)
			for _, r := range rs {
				s.take(t, c.Take(r))
			}
			s.take(t, c.Release())
			checkOnce(t, got, 4)
		})
	}
}

// seen counts good rows and others by their number of classes.
type seen struct{ good, refused map[int]int }

func (s seen) Process(_ context.Context, b *arrowio.Batch, _ pipeline.Emit) (pipeline.Rejects, error) {
	for i := range b.N {
		if b.Good(i) {
			s.good[b.K]++
		} else {
			s.refused[b.K]++
		}
	}
	return b.Reject, nil
}
func (seen) Advance(context.Context, pipeline.Time, pipeline.Emit) error { return nil }
func (seen) State() pipeline.State                                       { return nil }

// TestClassesAreLearntByRecord: one record in 50 of a model of 3 classes has 2 scores by a fault, which no message made
// of many records may turn into the majority.
func TestClassesAreLearntByRecord(t *testing.T) {
	for _, together := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			counts := pipeline.NewCounts()
			host := pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts,
				Outbox: pipeline.NewOutbox(0, 1, 1e9, 1), Log: slog.New(slog.DiscardHandler)}
			rows := seen{map[int]int{}, map[int]int{}}
			s := &oneShard{Shard: pipeline.NewShard(pipeline.ShardSpec{ID: 0, Inputs: 1, PaneLength: 1e9,
				Watermark: pipeline.NewWatermark(1, 1e9), Decoder: arrowio.NewDecoder(arrowio.Options{}),
				Stages: []pipeline.Stage{validate.New(validate.Config{}, host).Stage(), {Name: "rows", Operator: rows}},
				Host:   host})}
			c := oneConverter(t, together, 1, nil)
			for i := range 5000 {
				scores := "1,2,3"
				if i%50 == 0 && (first || i > 0) {
					scores = "1,2"
				}
				s.take(t, c.Take(pipeline.Record{Input: pipeline.Logits, Topic: "z-json", Offset: int64(i), Time: 1e18,
					Value: fmt.Appendf(nil, `{"id":"%d","model":"a","version":"1","logits":[%s]}`, i, scores)}))
			}
			s.take(t, c.Release())
			if rows.refused[3] > 0 || rows.good[3] < 4900 || rows.good[2] > 21 {
				t.Errorf("together %v, the first is wrong %v: taken by K %v, refused %v", together, first, rows.good,
					rows.refused)
			}
		}
	}
}
