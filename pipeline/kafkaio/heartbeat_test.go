package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestHeartbeatErrors: the answer to a heartbeat of a member that the group does not have is an error. It fails when kafka-go reads
// answers in another way than heartbeatError takes them.
func TestHeartbeatErrors(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 1, "z")
	c := newClient(t, brokers)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	member := silent(t, c, "g", "z")
	for _, x := range []struct {
		member string
		want   error
	}{{member, nil}, {"nobody", kafka.UnknownMemberId}} {
		res, err := c.Heartbeat(ctx, &kafka.HeartbeatRequest{GroupID: "g", GenerationID: 1, MemberID: x.member})
		if err != nil {
			t.Fatal(err)
		}
		if err := heartbeatError(res); !errors.Is(err, x.want) {
			t.Errorf("heartbeat of %q: got %v, want %v", x.member, err, x.want)
		}
	}
}

// TestHeartbeatsGoOnWhileTasksEnd: a member whose tasks take longer than the session to end, in a rebalance, stays a member: the
// second generation is the last one.
func TestHeartbeatsGoOnWhileTasksEnd(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "z")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const session = 6 * time.Second // the least that brokers allow
	began := make(chan int, 16)
	run := func(linger time.Duration) <-chan error {
		done := make(chan error, 1)
		g := Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"}, Log: quiet, Client: newClient(t, brokers), Session: session}
		go func() {
			done <- g.Run(ctx, func(wctx context.Context, p int, _ Commit) error {
				began <- p
				<-wctx.Done()
				if ctx.Err() == nil {
					time.Sleep(linger) // a last checkpoint
				}
				return nil
			})
		}()
		return done
	}
	a := run(session + 2*time.Second)
	<-began
	<-began
	b := run(0)
	first, second := <-began, <-began
	if first == second {
		t.Errorf("partition %d has two members", first)
	}
	select {
	case p := <-began:
		t.Errorf("partition %d was assigned once more: the membership was lost", p)
	case <-time.After(session):
	}
	cancel()
	if err := errors.Join(<-a, <-b); err != nil {
		t.Error(err)
	}
}

// TestHeartbeatsReachTheCoordinator: each of several groups on three brokers keeps its generation for longer than its session.
func TestHeartbeatsReachTheCoordinator(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.StartMany(t, 3)
	kafkatest.CreateTopics(t, brokers, 2, "z")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const session = 6 * time.Second // the least that brokers allow
	const groups = 4
	began, done := make(chan string, 64), make(chan error, groups)
	for i := range groups {
		g := Group{ID: fmt.Sprintf("g%d", i), Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"}, Log: quiet, Client: newClient(t, brokers), Session: session}
		go func() {
			done <- g.Run(ctx, func(wctx context.Context, p int, _ Commit) error {
				began <- fmt.Sprintf("%s partition %d", g.ID, p)
				<-wctx.Done()
				return nil
			})
		}()
	}
	for range 2 * groups {
		<-began
	}
	time.Sleep(2 * session)
	select {
	case again := <-began:
		t.Errorf("%s was assigned once more: the membership was lost", again)
	default:
	}
	for i := range groups {
		res, err := newClient(t, brokers).DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{fmt.Sprintf("g%d", i)}})
		if err != nil || len(res.Groups) != 1 || res.Groups[0].GroupState != "Stable" || len(res.Groups[0].Members) != 1 {
			t.Errorf("group %d: %+v, %v; want one member, stable", i, res, err)
		}
	}
	cancel()
	for range groups {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
