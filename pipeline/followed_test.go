package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/tracing"
)

// sampledSource gives the record "s" a sampled trace of its sender.
type sampledSource struct{ *relaySource }

func (s sampledSource) Next(ctx context.Context) (Record, error) {
	r, err := s.relaySource.Next(ctx)
	if string(r.Value) == "s" {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		r.Headers = []Header{{Key: tracing.Header, Value: []byte(parent)}}
	}
	return r, err
}

// TestDefectBeforeAFollowedRecord: as TestRelayFindsTheDefect, but the record behind the defect is followed by the
// tracer, so that the others are released for it.
func TestDefectBeforeAFollowedRecord(t *testing.T) {
	sink, guard := &groupSink{}, &blames{}
	for range 9 {
		src := &relaySource{groups: [][]string{{"a", "b", "x", "s", "c"}}}
		y := newRelay(src, sink)
		y.Source = sampledSource{src}
		y.Convert, y.Guard = &oneByOne{}, guard
		y.Trace = tracing.NewLane(tracing.Settings{Tracer: &tracing.Tracer{Export: func(tracing.Span) {}},
			Topic: func(string) string { return "" }})
		err := func() (err error) {
			defer Caught(&err) // as attempts.Tasks.Run has it
			return y.Run(context.Background())
		}()
		if err == nil {
			break
		}
		var at *TakeError
		if !errors.As(err, &at) {
			t.Errorf("an error that blames no record: %v", err)
			continue
		}
		if guard.times++; guard.at != at.Offset {
			guard.at, guard.times = at.Offset, 1
		}
	}
	if got, want := strings.Join(sink.writes, ""), "a b twice s c "; !strings.HasSuffix(got, want) {
		t.Errorf("wrote %q, want it to end with %q", got, want)
	}
}
