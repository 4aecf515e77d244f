package heads

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestWaiting: a request waits until an attempt gets somewhere, however often attempts that do not are made meanwhile.
func TestWaiting(t *testing.T) {
	type step struct {
		attempt int // 0: nothing comes
		state   string
		done    float64
		want    float64 // seconds of waiting, a minute after
	}
	for name, steps := range map[string][]step{
		"no trainer": {{want: 60}, {want: 120}},
		"full disk": {{1, "claimed", 0, 0}, {1, "held", 0, 120}, {2, "claimed", 0, 180}, {2, "held", 0, 240},
			{3, "claimed", 0, 300}, {3, "running", 0.1, 0}, {3, "running", 0.2, 0}},
		"full disk at half the work": {{1, "claimed", 0, 0}, {1, "running", 0.5, 0}, {1, "held", 0.5, 60},
			{2, "claimed", 0, 0}, {2, "held", 0.5, 180}, {3, "running", 0.5, 240}, {3, "running", 0.6, 0}},
		"failures": {{1, "failed", 0, 60}, {2, "claimed", 0, 120}, {2, "failed", 0, 180}},
		"lost":     {{1, "claimed", 0, 0}, {2, "claimed", 0, 120}},
		"stopped": {{1, "claimed", 0, 0}, {1, "stopped", 0, 60}, {2, "claimed", 0, 0}, {2, "running", 0.5, 0},
			{2, "stopped", 0.5, 60}},
		"stopped between failures": {{1, "held", 0, 60}, {2, "stopped", 0, 120}, {3, "claimed", 0, 180}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(nil, slog.New(slog.DiscardHandler))
				const id = "m/1+head1"
				for i, st := range steps {
					b := record.Job{Schema: 1, Kind: record.HeadJob, ID: id, Attempt: st.attempt, Trainer: "a",
						State: st.state, Done: st.done}
					if b.Attempt > 0 {
						if err := s.Record(&b); err != nil {
							t.Fatal(err)
						}
					}
					// Of two topics any may be read first.
					if err := s.Request(&record.Finetune{Schema: 1, ID: id, Model: "m", Version: "1", Number: 1,
						ShadowVersion: "1+head1"}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					if got := waiting(t, s); got != st.want {
						t.Errorf("step %d, %s of attempt %d: waits for %g s, want %g", i, st.state, st.attempt, got,
							st.want)
					}
				}
			})
		})
	}
}

// waiting is the metric of the only model.
func waiting(t *testing.T, s *State) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(Metrics{Jobs: s.Jobs})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "plumbline_finetune_waiting_seconds" {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no such metric")
	return 0
}
