package kafkaio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
)

// Group runs one worker per assigned partition number, as a Kafka consumer group. All topics must have the same number
// of partitions, so that one process gets the same numbers of each (co-partitioning). Workers start where their
// checkpoint says; the group's offsets are written for lag tools only.
type Group struct {
	ID      string
	Brokers []string
	Dialer  *kafka.Dialer
	Topics  []string
	Watch   bool // reassign when a topic gets more partitions
	Log     *slog.Logger
	Client  *kafka.Client // for heartbeats and commits
	// Session is how long the group waits for a member that does not answer; 0 = DefaultSession.
	Session time.Duration

	// Silent, which may be nil, is called with the time of the last answer and the error when no heartbeat has been
	// answered for longer than Session, and with the zero time when one is answered again.
	Silent func(since time.Time, err error)

	// Has, which may be nil, is called with the partition numbers of a generation before their workers begin, and with
	// member false when they have ended and the next generation is not known yet.
	Has func(partitions []int, member bool)

	// Outside is called with the error of each try to join that fails; may be nil.
	Outside func(err error)

	// Members, a directory, lets a process that was killed and starts again take its partitions back at once instead of
	// after Session: see member. "" = not.
	Members string
}

// DefaultSession is long enough for pauses of a busy machine, and short enough to wait for when another process takes
// over.
const DefaultSession = 10 * time.Second

func (g *Group) session() time.Duration { return cmp.Or(g.Session, DefaultSession) }

// CommitFunc writes the group's offsets of one partition number, by topic.
type CommitFunc func(ctx context.Context, next map[string]int64) error

const (
	rebalanceTimeout = 30 * time.Second
	joinBackoff      = time.Second
	watchInterval    = 5 * time.Second
	noHeartbeat      = 480 * time.Hour // kafka-go sends none: see pulse
)

// Run joins the group and runs work for every partition number assigned, until ctx is done. If work returns before its
// context ends, the group assigns anew after a pause, so work should retry failures itself.
func (g *Group) Run(ctx context.Context, work func(ctx context.Context, partition int, commit CommitFunc) error) error {
	was := g.counts(ctx)
	cg, err := g.join()
	if err != nil {
		return err
	}
	mem := g.openMembership()
	defer mem.close()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = cg.Close() }()
	wg.Go(func() { mem.leaveStale(ctx, g.Client, g.ID) })
	for {
		gen := g.next(ctx, cg)
		if gen == nil {
			return nil
		}
		mem.remember(gen.MemberID)
		ps := g.assigned(gen)
		g.Log.Info("assigned", "group", g.ID, "generation", gen.ID, "partitions", ps)
		var busy sync.WaitGroup
		g.has(ps, true)
		for _, p := range ps {
			wg.Add(1)
			busy.Add(1)
			w := worker{generation: gen.ID, partition: p,
				work: func(ctx context.Context) error { return work(ctx, p, g.commit(gen, p)) }}
			gen.Start(func(gctx context.Context) {
				defer wg.Done()
				defer busy.Done()
				g.run(ctx, gctx, w)
			})
		}
		g.live(gen, &busy, was)
	}
}

// join makes a member of the group.
func (g *Group) join() (*kafka.ConsumerGroup, error) {
	cg, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                g.ID,
		Brokers:           g.Brokers,
		Dialer:            g.Dialer,
		Topics:            g.Topics,
		GroupBalancers:    []kafka.GroupBalancer{copartition{}},
		SessionTimeout:    g.session(),
		HeartbeatInterval: noHeartbeat,
		RebalanceTimeout:  rebalanceTimeout,
		JoinGroupBackoff:  joinBackoff,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return nil, fmt.Errorf("consumer group %s: %w", g.ID, err)
	}
	return cg, nil
}

// worker is the work of one partition number in one generation of a group.
type worker struct {
	generation int32
	partition  int
	work       func(context.Context) error
}

// run runs one worker until ctx is done or its generation, whose context is gctx, ends.
func (g *Group) run(ctx, gctx context.Context, w worker) {
	// Not a child of gctx: that one ends with an error of its own, and work must not distinguish the end of a
	// generation from the end of ctx.
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(gctx, cancel)
	defer stop()
	err := w.work(wctx)
	log := g.Log.With("group", g.ID, "generation", w.generation, "partition", w.partition, "err", err)
	switch {
	case err == nil:
		return
	case wctx.Err() == nil:
		log.Error("worker ended")
	case errors.Is(err, pipeline.ErrUnsaved): // as when another process has gone on before this one had ended
		log.Warn("worker ended with its generation, without a last checkpoint: " +
			"whoever has the partition takes again what came after the one before")
		return
	default: // the end of ctx or of the generation, whatever it came upon
		return
	}
	backoff.Sleep(wctx, joinBackoff)
}

// live keeps the membership of a generation until busy says that its workers have ended. It ends the generation when
// the group says so, or when a topic has another number of partitions than in was.
func (g *Group) live(gen *kafka.Generation, busy *sync.WaitGroup, was map[string]int) {
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	gen.Start(func(gctx context.Context) { // the generation ends with the first function that returns
		select {
		case <-gctx.Done():
		case <-over:
		}
	})
	if g.Watch {
		gen.Start(func(gctx context.Context) { g.watch(gctx, was, end) })
	}
	gen.Start(func(gctx context.Context) {
		idle := make(chan struct{})
		go func() {
			<-gctx.Done()
			busy.Wait()
			g.has(nil, false)
			close(idle)
		}()
		g.newPulse(gen).run(idle, end)
	})
}

func (g *Group) has(partitions []int, member bool) {
	if g.Has != nil {
		g.Has(partitions, member)
	}
}

// next waits for the next generation; nil when ctx is done.
func (g *Group) next(ctx context.Context, cg *kafka.ConsumerGroup) *kafka.Generation {
	for {
		gen, err := cg.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, kafka.ErrGroupClosed) {
			return nil
		}
		if err == nil {
			return gen
		}
		// kafka-go joins anew by itself; what it reports here is for the log.
		g.Log.Warn("join the group, trying again", "group", g.ID, faultlog.Err(err))
		if g.Outside != nil {
			g.Outside(err)
		}
		backoff.Sleep(ctx, joinBackoff)
	}
}

// assigned returns the partition numbers that this member has of every topic.
func (g *Group) assigned(gen *kafka.Generation) []int {
	count := map[int]int{}
	for _, t := range g.Topics {
		for _, a := range gen.Assignments[t] {
			count[a.ID]++
		}
	}
	var ps []int
	for p, n := range count {
		if n == len(g.Topics) {
			ps = append(ps, p)
		}
	}
	slices.Sort(ps)
	return ps
}

func (g *Group) commit(gen *kafka.Generation, partition int) CommitFunc {
	return func(ctx context.Context, next map[string]int64) error {
		return g.commitOffsets(ctx, gen, partition, next)
	}
}
