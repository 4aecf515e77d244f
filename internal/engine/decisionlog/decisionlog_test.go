package decisionlog_test

import (
	"context"
	"testing"

	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// TestDecisionCopies: what was decided is written once more, with the bytes of the original; all else is not.
func TestDecisionCopies(t *testing.T) {
	message := func(s pipeline.Stream, at pipeline.Time, rec any) pipeline.Message {
		m, err := pipeline.NewMessage(s, "k", at, rec)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	sink := &messageLog{}
	alert := message(pipeline.StreamAlerts, 5, &record.Alert{Schema: 1, Model: "a/b", Version: "1", Value: .1})
	in := []pipeline.Message{
		message(pipeline.StreamSnapshots, 4, &record.Snapshot{Model: "m"}),
		alert,
		message(pipeline.StreamDecisions, 6, &record.Calibrator{Model: "m", Version: "2", Outcome: "no change <&>"}),
		{Stream: pipeline.StreamPanes, Value: []byte{0, 1}},
	}
	if err := (decisionlog.Recorder{Sink: sink}).Write(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if len(sink.got) != 6 || len(in) != 4 {
		t.Fatalf("%d messages written, want the 4 and 2 copies", len(sink.got))
	}
	c := sink.got[4]
	want := `{"schema":1,"kind":"alert","model":"a/b","version":"1","record":` + string(alert.Value) + `}`
	if c.Stream != pipeline.StreamHistory || c.Partition != -1 || string(c.Key) != "a/b" || c.Time != 5 ||
		string(c.Value) != want {
		t.Errorf("the copy of an alert is %+v %s, want %s", c, c.Value, want)
	}
}

type messageLog struct{ got []pipeline.Message }

func (l *messageLog) Write(_ context.Context, ms []pipeline.Message) error {
	l.got = append(l.got, ms...)
	return nil
}

func (l *messageLog) Close() error { return nil }
