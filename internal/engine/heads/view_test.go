package heads

import (
	"log/slog"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestWhyAJobWaitsOrEnded: who looks at the list learns why a request has no head, not only why one was asked for.
func TestWhyAJobWaitsOrEnded(t *testing.T) {
	s := New(nil, slog.New(slog.DiscardHandler))
	const id = "m/1+head1"
	err := s.Request(&record.Finetune{Schema: 1, ID: id, Model: "m", Version: "1", Number: 1,
		ShadowVersion: "1+head1", Why: "accuracy fell"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		rec         any
		state, want string
	}{
		{nil, "waiting", "accuracy fell"},
		{&record.Job{Schema: 1, Kind: record.HeadJob, ID: id, Attempt: 1, Trainer: "a", State: "claimed"}, "running",
			"accuracy fell"},
		{&record.Job{Schema: 1, Kind: record.HeadJob, ID: id, Attempt: 1, Trainer: "a", State: "held",
			Step: "no room"}, "waiting", "an attempt failed: no room"},
		{&record.Job{Schema: 1, Kind: record.HeadJob, ID: id, Attempt: 2, Trainer: "a", State: "stopped",
			Step: "epoch 1"}, "waiting", "an attempt failed: no room"}, // the first did
		{&record.Order{Schema: 1, Kind: record.HeadCancel, ID: id, Action: "cancel", By: "ann", Why: "too late"},
			"cancelled", "cancelled by ann: too late"},
	} {
		if err := s.Record(step.rec); err != nil {
			t.Fatal(err)
		}
		if h := s.Current().Heads[0]; h.State != step.state || h.Why != step.want {
			t.Errorf("got %s: %s; want %s: %s", h.State, h.Why, step.state, step.want)
		}
	}
}
