package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestHeartbeatErrors: the answer to a heartbeat of a member that the group does not have is an error. It fails when
// kafka-go reads answers in another way than heartbeatError takes them.
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

// TestHeartbeatsGoOnWhileTasksEnd: a member whose tasks take longer than the session to end, in a rebalance, stays a
// member: the second generation is the last one.
func TestHeartbeatsGoOnWhileTasksEnd(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "z")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const session = 6 * time.Second // the least that brokers allow
	began := make(chan int, 16)
	run := func(linger time.Duration) <-chan error {
		done := make(chan error, 1)
		g := Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"},
			Log: quiet, Client: newClient(t, brokers), Session: session}
		go func() {
			done <- g.Run(ctx, func(wctx context.Context, p int, _ CommitFunc) error {
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

// TestHeartbeatsReachTheCoordinator: each of several groups on three brokers keeps its generation for longer than its
// session.
func TestHeartbeatsReachTheCoordinator(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	brokers := kafkatest.StartMany(t, 3)
	kafkatest.CreateTopics(t, brokers, 2, "z")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const session = 6 * time.Second // the least that brokers allow
	const groups = 4
	began, done := make(chan string, 64), make(chan error, groups)
	for i := range groups {
		g := Group{ID: fmt.Sprintf("g%d", i), Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second},
			Topics: []string{"z"}, Log: quiet, Client: newClient(t, brokers), Session: session}
		go func() {
			done <- g.Run(ctx, func(wctx context.Context, p int, _ CommitFunc) error {
				began <- fmt.Sprintf("%s partition %d", g.ID, p)
				<-wctx.Done()
				return nil
			})
		}()
	}
	for range 2 * groups {
		<-began
	}
	select {
	case again := <-began:
		t.Errorf("%s was assigned once more: the membership was lost", again)
	case <-time.After(2 * session):
	}
	for i := range groups {
		res, err := newClient(t, brokers).DescribeGroups(ctx,
			&kafka.DescribeGroupsRequest{GroupIDs: []string{fmt.Sprintf("g%d", i)}})
		if err != nil || len(res.Groups) != 1 || res.Groups[0].GroupState != "Stable" ||
			len(res.Groups[0].Members) != 1 {
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

// TestSilence: a group that no broker answers says so once the session has passed, with what was said last, and that it
// is over when one answers again.
func TestSilence(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	start := func(port int) *kfake.Cluster {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SeedTopics(1, "z"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cluster := start(0)
	brokers := cluster.ListenAddrs()
	_, p, err := net.SplitHostPort(brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	type call struct {
		since time.Time
		err   error
	}
	calls, began := make(chan call, 64), make(chan int, 64)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const session = 6 * time.Second
	g := Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"},
		Log: quiet, Client: newClient(t, brokers), Session: session,
		Silent: func(since time.Time, err error) { calls <- call{since, err} }}
	done := make(chan error, 1)
	go func() {
		done <- g.Run(ctx, func(wctx context.Context, p int, _ CommitFunc) error {
			began <- p
			<-wctx.Done()
			return nil
		})
	}()
	<-began
	if c := <-calls; !c.since.IsZero() {
		t.Errorf("a generation that has begun is silent since %v", c.since)
	}
	before := time.Now()
	cluster.Close()
	c := <-calls
	if c.since.IsZero() || c.since.After(before) || time.Since(before) < session-2*heartbeat || c.err == nil {
		t.Errorf("without a broker: silent since %v, %v; reported %v after it was gone",
			c.since, c.err, time.Since(before))
	}
	cluster = start(port)
	defer cluster.Close()
	select {
	case c := <-calls:
		if !c.since.IsZero() {
			t.Errorf("with a broker again: silent since %v, %v", c.since, c.err)
		}
	case <-time.After(patience):
		t.Error("with a broker again: that is not reported")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
