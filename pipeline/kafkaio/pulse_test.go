package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	beats "github.com/segmentio/kafka-go/protocol/heartbeat"
)

var errNoBroker = errors.New("no broker answers")

// coordinators answer heartbeats without a network.
type coordinators struct {
	answer func(member string) (code int16, err error)
}

func (c coordinators) RoundTrip(_ context.Context, _ net.Addr, r kafka.Request) (kafka.Response, error) {
	switch r := r.(type) {
	case *findcoordinator.Request:
		return &findcoordinator.Response{Host: "coordinator", Port: 9092}, nil
	case *beats.Request:
		code, err := c.answer(r.MemberID)
		if err != nil {
			return nil, err
		}
		// What version 1 looks like to kafka-go: the code is in the low half of the time.
		return &beats.Response{ThrottleTimeMs: int32(code)}, nil
	}
	return nil, fmt.Errorf("unexpected request %T", r)
}

// beating runs a pulse of a session of 10 s with the given answers for a minute; events has what it said and when.
func beating(t *testing.T, answer func(at time.Duration) (int16, error)) (events []string) {
	begin := time.Now()
	at := func() time.Duration { return time.Since(begin) }
	p := &pulse{
		group:   "g",
		gen:     &kafka.Generation{ID: 3, MemberID: "me"},
		session: 10 * time.Second,
		log:     quiet,
		client: &kafka.Client{Addr: kafka.TCP("broker:9092"),
			Transport: coordinators{func(member string) (int16, error) {
				if member != "me" {
					t.Errorf("a heartbeat of %q", member)
				}
				return answer(at())
			}}},
		silent: func(since time.Time, err error) {
			if since.IsZero() {
				events = append(events, fmt.Sprintf("%s answered", at()))
				return
			}
			if !errors.Is(err, errNoBroker) {
				t.Errorf("silent for another reason: %v", err)
			}
			events = append(events, fmt.Sprintf("%s silent since %s", at(), since.Sub(begin)))
		},
	}
	idle, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.run(idle, sync.OnceFunc(func() { events = append(events, fmt.Sprintf("%s over", at())) }))
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		close(idle)
		<-done
	}
	return append(events, fmt.Sprintf("%s ended", at()))
}

// TestPulse: a pulse goes on through a rebalance and through silence, and ends with the membership.
func TestPulse(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(at time.Duration) (int16, error)
		want   []string
	}{
		{"all is well", func(time.Duration) (int16, error) { return 0, nil }, []string{"0s answered", "1m0s ended"}},
		{"a short silence", func(at time.Duration) (int16, error) {
			if at < 9*time.Second {
				return 0, errNoBroker
			}
			return 0, nil
		}, []string{"0s answered", "1m0s ended"}},
		{"a long silence, then a broker", func(at time.Duration) (int16, error) {
			if at > 5*time.Second && at < 30*time.Second {
				return 0, errNoBroker
			}
			return 0, nil
		}, []string{"0s answered", "16s silent since 5s", "30s answered", "1m0s ended"}},
		{"a rebalance that takes longer than the session", func(at time.Duration) (int16, error) {
			if at >= 40*time.Second {
				return int16(kafka.RebalanceInProgress), nil
			}
			return 0, nil
		}, []string{"0s answered", "40s over", "1m0s ended"}},
		{"another generation", func(at time.Duration) (int16, error) {
			if at >= 7*time.Second {
				return int16(kafka.IllegalGeneration), nil
			}
			return 0, nil
		}, []string{"0s answered", "7s over", "7s ended"}},
		{"unknown to the group", func(time.Duration) (int16, error) { return int16(kafka.UnknownMemberId), nil },
			[]string{"0s answered", "1s over", "1s ended"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := beating(t, c.answer); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}
