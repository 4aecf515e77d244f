package kafkaio

import (
	"log/slog"
	"testing"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

// TestSilenceOfBrokers: an input is idle where brokers answer and have nothing for so long. The time in which none
// answers does not count, nor that before it.
func TestSilenceOfBrokers(t *testing.T) {
	const timeout = time.Minute
	now := time.Now()
	ago := func(seconds ...time.Duration) (out []time.Duration) {
		for _, x := range seconds {
			out = append(out, x*time.Second)
		}
		return out
	}
	for name, c := range map[string]struct {
		silent  time.Duration   // since when the input has no message
		answers []time.Duration // ago, each asked for at the one before
		idle    bool
	}{
		"no message":                {61 * time.Second, ago(60, 50, 40, 30, 20, 10, 0), true},
		"a message not long ago":    {59 * time.Second, ago(50, 40, 30, 20, 10, 0), false},
		"no broker answers":         {80 * time.Second, ago(70, 60), false},
		"one answers again":         {90 * time.Second, ago(80, 10, 0), false},
		"one has answered since":    {200 * time.Second, ago(90, 80, 70, 60, 50, 40, 30, 20, 10, 0), true},
		"a slow answer is no fault": {70 * time.Second, ago(65, 52, 39, 26, 13, 0), true},
	} {
		in := newInput(&fetcher{quiet: quietFor(timeout)})
		in.f.end.Store(in.f.next)
		in.since = now.Add(-c.silent)
		asked := in.since
		for _, ago := range c.answers {
			at := now.Add(-ago)
			in.f.answered(asked, at)
			asked = at
		}
		s := &Source{spec: Spec{IdleTimeout: timeout, Log: slog.New(slog.DiscardHandler)}, in: []*input{in},
			order: []pipeline.Input{pipeline.Logits}}
		if r, idle := s.becameIdle(0); idle != c.idle || r.Idle != c.idle {
			t.Errorf("%s: idle %v, want %v", name, idle, c.idle)
		}
	}
}

// TestSilent: of an input that was read to its end it says since when nothing has come, and when it will be idle if it
// ever will; of an idle one nothing.
func TestSilent(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Minute} {
		in := newInput(&fetcher{quiet: quietFor(timeout)})
		in.f.end.Store(in.f.next)
		since := time.Now().Add(-2 * time.Minute)
		in.resetAt(since, timeout)
		s := &Source{spec: Spec{IdleTimeout: timeout, Log: slog.New(slog.DiscardHandler)}, in: []*input{in},
			order: []pipeline.Input{pipeline.Labels}}
		got, ok := s.Silent()[pipeline.Labels]
		if !ok || !got.Since.Equal(since) || got.Until.IsZero() != (timeout == 0) ||
			timeout > 0 && !got.Until.Equal(since.Add(timeout)) {
			t.Errorf("idle after %v: %+v %v, silent since %v", timeout, got, ok, since)
		}
		in.f.heard.Store(sinceStart(time.Now()))
		if _, idle := s.becameIdle(0); idle != (timeout > 0) || (len(s.Silent()) == 0) != idle {
			t.Errorf("idle after %v: idle %v, silent %v", timeout, idle, s.Silent())
		}
	}
}
