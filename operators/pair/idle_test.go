package pair

import (
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/operators/join"
	"github.com/plumbline/plumbline/operators/validate"
	"github.com/plumbline/plumbline/pipeline"
)

// TestDeadLetterOfAnIdleRelease: a response that an idle input lets go may meet a label that does not fit it, which is
// a dead letter as when a record lets it go. It has the place of the input's latest record, and asks for a checkpoint.
func TestDeadLetterOfAnIdleRelease(t *testing.T) {
	row := batchtest.Rows(3, batchtest.Options{N: 1})[0]
	row.Label = 99
	response := func(row batchtest.Row, offset int64) pipeline.Record {
		e := event{row, arrowio.Response, 0}
		return pipeline.Record{Input: pipeline.Logits, Topic: "logits", Offset: offset, Time: row.TS,
			Value: message(t, e.rows())}
	}
	label := func(row batchtest.Row, offset int64) pipeline.Record {
		r := batchtest.Labels(t, []batchtest.Row{row}, 1)[0]
		r.Offset = offset
		return r
	}
	later := row
	later.ID, later.TS, later.LabelTS, later.Label = "x", row.TS+100*second, row.LabelTS+100*second, 0
	idle := func(in pipeline.Input) pipeline.Record { return pipeline.Record{Input: in, Idle: true} }
	for _, c := range []struct {
		name          string
		records       []pipeline.Record
		topic, offset string
	}{
		{"records", []pipeline.Record{label(row, 0), response(row, 0), label(later, 1), response(later, 1)},
			"logits", "1"},
		{"one input is idle", []pipeline.Record{label(row, 0), response(row, 5), idle(pipeline.Logits)},
			"logits", "5"},
		{"both are", []pipeline.Record{label(row, 0), response(row, 7), idle(pipeline.Labels), idle(pipeline.Logits)},
			"logits", "7"},
	} {
		counts := pipeline.NewCounts()
		h := pipeline.Host{Out: pipeline.NewOut(counts), Counts: counts, Log: quiet,
			Outbox: pipeline.NewOutbox(0, 1, 10*second, 1)}
		w := pipeline.NewWatermark(2, 10*second)
		h.Clocks = w.Clocks
		stages := []pipeline.Stage{validate.New(validate.Config{NeedID: true}, h).Stage(),
			New(Options{Config: Config{Wait: time.Minute, MemoryBytes: 1 << 20}}, h).Stage(),
			join.New(join.Options{Config: join.Config{Wait: time.Hour, MaxRows: 1 << 20}}, h).Stage()}
		s := pipeline.NewShard(pipeline.ShardSpec{Inputs: 2, PaneLength: 10 * second, Watermark: w,
			Decoder: arrowio.NewDecoder(arrowio.Options{}), Stages: stages, Host: h})
		for i, r := range c.records {
			if i == len(c.records)-1 && r.Idle {
				s.Written() // what comes now has to say itself that there is something to write
			}
			if err := s.Take(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		n, out := counts.All(), s.Decided()
		if n[pipeline.CountRejected+":label_range"] != 1 || n[pipeline.CountDeadLetters+":label_range"] != 1 ||
			len(out.Before) != 1 || !out.Dirty {
			t.Errorf("%s: counts %v, %d messages, dirty: %t; want one rejected row and its dead letter", c.name, n,
				len(out.Before), out.Dirty)
			continue
		}
		said := map[string]string{}
		for _, header := range out.Before[0].Headers {
			said[header.Key] = string(header.Value)
		}
		if said["plumbline-topic"] != c.topic || said["plumbline-offset"] != c.offset ||
			said["plumbline-detail"] != "1 rows: label_range (an earlier label: 99; allowed are 0 to 3)" {
			t.Errorf("%s: dead letter %v, want topic %s offset %s", c.name, said, c.topic, c.offset)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
