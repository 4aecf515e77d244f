package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// pulse keeps this process a member of its group for one generation, instead of kafka-go's own heartbeats, which have
// three faults. They share a connection with the offset commits, and a broker answers requests of a connection in
// order, so a commit that waits for a busy disk delays them. The first one that fails ends the generation without
// giving a reason. They stop when a generation ends, while tasks still write their last checkpoints: a rebalance that
// takes longer than the session then costs the membership, and causes a second rebalance. Heartbeats of pulse have
// requests of their own, are repeated until they are answered, and continue until the last task has ended.
type pulse struct {
	client  *kafka.Client
	group   string
	gen     *kafka.Generation
	session time.Duration
	log     *slog.Logger
	silent  func(since time.Time, err error)

	coordinator net.Addr // of the group; nil: to be asked for
}

// heartbeat is the time between two heartbeats; the answer also tells a member that the group rebalances.
const heartbeat = time.Second

// newPulse returns the pulse of a generation.
func (g *Group) newPulse(gen *kafka.Generation) *pulse {
	silent := g.Silent
	if silent == nil {
		silent = func(time.Time, error) {}
	}
	return &pulse{client: g.Client, group: g.ID, gen: gen, session: g.session(), log: g.Log, silent: silent}
}

// run sends heartbeats until idle is closed or the membership is lost, and calls end when the generation is over.
func (p *pulse) run(idle <-chan struct{}, end func()) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	answered, warned := time.Now(), false
	p.silent(time.Time{}, nil) // a new generation is an answer
	for {
		select {
		case <-idle:
			return
		case <-tick.C:
		}
		err := p.beat(idle)
		switch {
		case err == nil:
			if warned {
				p.log.Info("heartbeats are answered again", "group", p.group, "after", time.Since(answered))
				p.silent(time.Time{}, nil)
			}
			answered, warned = time.Now(), false
		case errors.Is(err, kafka.RebalanceInProgress): // which counts as an answer
			answered = time.Now()
			end()
		case errors.Is(err, kafka.UnknownMemberId), errors.Is(err, kafka.IllegalGeneration),
			errors.Is(err, kafka.FencedInstanceID):
			p.log.Warn("the group has gone on without this process: its session had ended, or it was told to leave",
				"group", p.group, "generation", p.gen.ID,
				"last_heartbeat", time.Since(answered), "session_timeout", p.session, "err", err)
			end()
			return
		case time.Since(answered) > p.session && !warned:
			p.log.Warn("no heartbeat has been answered for longer than the session: "+
				"others may have been given this process's partitions", "group", p.group,
				"last_heartbeat", time.Since(answered), "session_timeout", p.session, "err", err)
			p.silent(answered, err)
			warned = true
		}
	}
}

// beat sends one heartbeat. If it is not answered within a third of the session, the next one goes over another
// connection.
func (p *pulse) beat(idle <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), p.session/3)
	defer cancel()
	go func() {
		select {
		case <-idle:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := p.find(ctx)
	if err == nil {
		err = p.send(ctx)
	}
	if err != nil && !errors.Is(err, kafka.RebalanceInProgress) {
		p.coordinator = nil // it may have moved
	}
	return err
}

// find asks for the group's coordinator: kafka-go (v0.4.51) sends requests of a group there, but heartbeats to any
// broker.
func (p *pulse) find(ctx context.Context) error {
	if p.coordinator != nil {
		return nil
	}
	res, err := p.client.FindCoordinator(ctx, &kafka.FindCoordinatorRequest{Key: p.group,
		KeyType: kafka.CoordinatorKeyTypeConsumer})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("coordinator of the group: %w", err)
	}
	p.coordinator = kafka.TCP(net.JoinHostPort(res.Coordinator.Host, strconv.Itoa(res.Coordinator.Port)))
	return nil
}

func (p *pulse) send(ctx context.Context) error {
	res, err := p.client.Heartbeat(ctx, &kafka.HeartbeatRequest{Addr: p.coordinator, GroupID: p.group,
		GenerationID: p.gen.ID, MemberID: p.gen.MemberID})
	if err != nil {
		return err
	}
	return heartbeatError(res)
}

// MayJoin returns an error where this user may not join a group. A heartbeat of a member that is none changes nothing
// and needs what joining needs; other requests that change nothing need less.
func MayJoin(ctx context.Context, client *kafka.Client, group string) error {
	p := pulse{client: client, group: group, gen: &kafka.Generation{MemberID: "none"}}
	err := p.find(ctx)
	if err == nil {
		err = p.send(ctx)
	}
	if errors.Is(err, kafka.GroupAuthorizationFailed) {
		return err
	}
	return nil
}

// heartbeatError is the error in the answer to a heartbeat. From version 1 on an answer is the throttle time and then
// the error code. kafka-go (v0.4.51) reads them in the wrong order, so the code is in the low half of its field for the
// time.
func heartbeatError(res *kafka.HeartbeatResponse) error {
	if res.Error != nil {
		return res.Error
	}
	if code := int16(res.Throttle.Milliseconds()); code != 0 {
		return kafka.Error(code)
	}
	return nil
}

// counts returns the numbers of partitions of the topics, as far as the brokers tell them.
func (g *Group) counts(ctx context.Context) map[string]int {
	was := map[string]int{}
	if !g.Watch {
		return was
	}
	for _, topic := range g.Topics {
		if n, err := Partitions(ctx, g.Client, topic); err == nil {
			was[topic] = n
		}
	}
	return was
}

// watch calls end when a topic has another number of partitions than in was. That was counted before the group
// assigned them, so partitions that are added meanwhile are not missed.
func (g *Group) watch(ctx context.Context, was map[string]int, end func()) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		for _, topic := range g.Topics {
			n, err := Partitions(ctx, g.Client, topic)
			if err != nil {
				continue // it is asked again
			}
			if before, ok := was[topic]; ok && before != n {
				g.Log.Info("a topic has other partitions, the group assigns anew", "group", g.ID, "topic", topic,
					"partitions", n, "before", before)
				was[topic] = n
				end()
				return
			}
			was[topic] = n
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// commitOffsets writes offsets of one partition number as a member of a generation.
func (g *Group) commitOffsets(ctx context.Context, gen *kafka.Generation, partition int, next map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, g.session()) // lag tools can wait for the next
	defer cancel()
	topics := map[string][]kafka.OffsetCommit{}
	for topic, o := range next {
		topics[topic] = []kafka.OffsetCommit{{Partition: partition, Offset: o}}
	}
	res, err := g.Client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: g.ID, GenerationID: int(gen.ID),
		MemberID: gen.MemberID, Topics: topics})
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(res.Topics)) {
		for _, p := range res.Topics[topic] {
			if p.Error != nil {
				errs = append(errs, fmt.Errorf("%s partition %d: %w", topic, p.Partition, p.Error))
			}
		}
	}
	return errors.Join(errs...)
}
