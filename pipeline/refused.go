package pipeline

import (
	"context"
	"errors"
	"fmt"
)

// RefusedError says that brokers have refused messages for good, which are lost; Err is why. All other messages of the
// call are written.
type RefusedError struct {
	By  map[Refusal]int64
	Err error // of the first
}

// Refusal is a refused output and the reason. The set of reasons is bounded, because it becomes a metric's label.
type Refusal struct {
	Stream Stream
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string {
	n := int64(0)
	for _, k := range e.By {
		n += k
	}
	return fmt.Sprintf("%d messages refused for good, the first: %v", n, e.Err)
}

// Unwrap returns the reason of the first refusal.
func (e *RefusedError) Unwrap() error { return e.Err }

// lossySink counts messages that are refused for good and goes on: otherwise a task would stop at such a message,
// restart and make it again, without end.
type lossySink struct {
	Sink
	counts *Counts // may be nil
}

// Write implements Sink.
func (s lossySink) Write(ctx context.Context, ms []Message) error {
	err := s.Sink.Write(ctx, ms)
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	if s.counts == nil {
		return nil
	}
	for r, n := range refused.By {
		if r.Stream == StreamDeadLetter {
			s.counts.AddReason(CountLettersRefused, r.Reason, n)
		} else {
			s.counts.AddReason(CountRefused, string(r.Stream), n)
		}
	}
	return nil
}
