package kafkaio

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/plumbline/plumbline/pipeline"
)

// TestOneInputFails: the error comes before further records of the other input, however many there are.
func TestOneInputFails(t *testing.T) {
	made := func(in pipeline.Input) *input { return newInput(&fetcher{input: in, until: -1, next: 0}) }
	logits, labels := made(pipeline.Logits), made(pipeline.Labels)
	labels.f.err = errors.New("labels: offset is not in the log")
	close(labels.f.out)
	s := &Source{spec: Spec{}, in: []*input{logits, labels}, order: []pipeline.Input{pipeline.Logits, pipeline.Labels}}
	logits.f.out <- &part{records: []pipeline.Record{{Offset: 0}, {Offset: 1}}}
	if r, err := s.Next(t.Context()); !errors.Is(err, labels.f.err) {
		t.Errorf("got record %d, %v; want the error of labels", r.Offset, err)
	}
}

// TestRecordsWithoutATimestamp: rows are held against it, so that one without moves no clock.
func TestRecordsWithoutATimestamp(t *testing.T) {
	in := newInput(&fetcher{input: pipeline.Logits, until: -1, next: 0})
	s := &Source{spec: Spec{}, in: []*input{in}, order: []pipeline.Input{pipeline.Logits}}
	in.f.out <- &part{records: []pipeline.Record{{Time: -1_000_000}, {Time: 0}, {Time: 5}}}
	for _, want := range []pipeline.Time{1, 1, 5} {
		if r, err := s.Next(t.Context()); err != nil || r.Time != want {
			t.Errorf("timestamp %d, %v; want %d", r.Time, err, want)
		}
	}
}

// TestWaitingSourceIsWoken: by an input that turns out to be at its log's end, and by a gate that closes.
func TestWaitingSourceIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, woken := &Gate{}, newNews()
		made := func(in pipeline.Input) *input {
			return newInput(&fetcher{input: in, until: -1, part: new(part), news: woken})
		}
		logits, labels := made(pipeline.Logits), made(pipeline.Labels)
		s := &Source{spec: Spec{Gate: g, ReportPause: true}, news: woken, in: []*input{logits, labels},
			order: []pipeline.Input{pipeline.Logits, pipeline.Labels}}
		g.add(s)
		got := make(chan pipeline.Record)
		next := func() {
			go func() {
				r, err := s.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- r
			}()
			synctest.Wait()
		}
		logits.f.out <- &part{records: []pipeline.Record{{Offset: 7}}}
		next()
		select {
		case r := <-got:
			t.Fatalf("%+v came before labels that may be older", r)
		default:
		}
		if err := labels.f.hand(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.Offset != 7 {
			t.Errorf("got %+v", r)
		}
		if err := logits.f.hand(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		next()
		g.Close()
		if r := <-got; !r.Paused {
			t.Errorf("got %+v, want the news of the pause", r)
		}
	})
}
