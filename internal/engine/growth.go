package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// openBook reads how many shards the deployment has; first applies if that was never recorded.
func (r *KafkaRun) openBook(ctx context.Context, first int) error {
	r.book = &scale.Book{Store: r.store, Group: r.Config.Group, Log: r.Log, First: first}
	if err := r.book.Load(ctx); err != nil {
		return err
	}
	return r.book.Recover(ctx, scale.Topics{Config: &r.Config, Client: r.Client})
}

// beginSplit makes a new deployment split its topics from the start, if its configuration asks for that. A deployment
// whose shards have read the producers' topics cannot change to it by configuration.
func beginSplit(ctx context.Context, r *KafkaRun, began bool) error {
	plan, _ := r.book.Now()
	r.troubles.Keyed.Store(!plan.Split)
	if plan.Split || !r.Config.Splits() {
		return nil
	}
	if began && len(r.Config.Inputs) == 0 { // a group that began by id goes on so
		r.Log.Warn("topics.keyed is false and has no effect: the shards of this group have read the topics "+
			"themselves since it began, so producers must send each row to the partition of its id. Set it to true; "+
			"or let plumbline split the topics by more partitions: plumbline scale --config FILE --partitions N "+
			"--by NAME --why REASON",
			"group", r.Config.Group, "partitions", plan.Of)
		return nil
	}
	if began {
		return fmt.Errorf("inputs: the shards of group %s read %s themselves since it began, so no other topic can be "+
			"split for them; set another group and another topics.panes, or leave inputs away", r.Config.Group,
			r.Config.Topics.Logits)
	}
	return r.book.Start(ctx, scale.Topics{Config: &r.Config, Client: r.Client})
}

// Shards is how many shards the deployment has.
func (rt *Engine) Shards() int {
	plan, _ := rt.book.Now()
	return plan.Of
}

// growing is a run whose number of shards may change.
type growing struct{ *KafkaRun }

// runShard runs a shard, or lets it seal its state, until ctx is done.
func (r growing) runShard(ctx context.Context, p int, open pipeline.Open) error {
	for ctx.Err() == nil {
		plan, _ := r.book.Now()
		if p >= plan.Of { // watchTopology names it
			<-ctx.Done()
			return nil
		}
		while, stop := r.book.While(ctx, func(now scale.Plan) bool { return now.Of == plan.Of && now.To == plan.To })
		err := r.attempts.Run(while, attempts.ID{Task: "shard", Partition: p},
			func(ctx context.Context, guard *attempts.Guard) error {
				if plan.To != 0 {
					return r.seal(ctx, guard, p, open)
				}
				if err := r.begin(ctx, plan, p); err != nil {
					return err
				}
				return r.shard(ctx, guard, p, open)
			})
		ended := while.Err() != nil
		stop()
		if err != nil || !ended {
			return err
		}
	}
	return nil
}

// nameUnread reports a failing task for as long as a topic has partitions that nobody reads.
func (r growing) nameUnread(ctx context.Context, t *topicShape, named *atomic.Bool) {
	plan, _ := r.book.Now()
	if t.name == "" || plan.Split && t.key != "panes" || named.Load() {
		return
	}
	id, of := attempts.ID{Task: "shard", Partition: plan.Of}, plan.Of
	what := fmt.Sprintf("rows in what is beyond %d are not read. This takes them: plumbline scale --config FILE "+
		"--partitions N --by NAME --why REASON", plan.Of)
	if t.key == "panes" {
		id, of = attempts.ID{Task: "model", Partition: r.panes}, r.panes
		what = "nothing is written to what is beyond, and nothing is missing"
	}
	n, err := kafkaio.Partitions(ctx, r.Client, t.name)
	if err != nil {
		r.Log.Debug("partitions of a topic", "topic", t.name, "err", err)
	}
	if err != nil || n <= of {
		return
	}
	named.Store(true)
	cause := attempts.Lasting(fmt.Errorf("topic %s has %d partitions, and had %d when the deployment began: %s", t.name,
		n, of, what))
	go func() {
		defer named.Store(false)
		while, stop := r.book.While(ctx, func(now scale.Plan) bool { return now.Of == plan.Of })
		defer stop()
		_ = r.attempts.Run(while, id, func(context.Context, *attempts.Guard) error { return cause })
	}()
}

// begin makes a shard's first state after the number of shards has changed.
func (r growing) begin(ctx context.Context, plan scale.Plan, p int) error {
	if plan.From == 0 {
		return nil
	}
	r.beginning.Lock()
	defer r.beginning.Unlock()
	began := time.Now()
	err := r.book.Begin(ctx, plan, p, func(p, of int) (*pipeline.Shard, error) { return r.NewShard(p, of, r.panes) })
	if err == nil {
		r.Log.Info("a shard has its first state", "shard", p, "of", plan.Of, "took", time.Since(began))
	}
	return err
}

// seal has a shard make its last checkpoint and copies what other shards take from it. It returns when ctx is done.
func (r growing) seal(ctx context.Context, guard *attempts.Guard, p int, open pipeline.Open) error {
	plan, _ := r.book.Now()
	if plan.To == 0 {
		return nil
	}
	empty, err := r.NewShard(p, plan.Of, r.panes)
	if err != nil {
		return err
	}
	defer empty.Close()
	copied, err := r.book.Copy(ctx, plan, empty)
	if err == nil && !copied {
		if err = r.shard(ctx, guard, p, open); err == nil {
			copied, err = r.book.Copy(ctx, plan, empty)
		}
	}
	if err == nil && !copied && ctx.Err() == nil {
		err = fmt.Errorf("shard %d has not sealed its state", p)
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// sealing ends a shard before it reads anything, so that it only makes its last checkpoint.
type sealing struct{ stop context.CancelFunc }

// Resume implements pipeline.Waiter.
func (s sealing) Resume() error { s.stop(); return nil }

// Wake implements pipeline.Waiter.
func (s sealing) Wake() <-chan struct{} { return nil }

// Settle implements pipeline.Waiter.
func (s sealing) Settle(context.Context) error { return nil }

// steps carries out the steps of a scale order that belong to no single shard. Every process tries; one succeeds.
func (r growing) steps(ctx context.Context) error {
	for ctx.Err() == nil {
		plan, changed := r.book.Now()
		if !plan.Open() {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		ready, err := r.book.Await(ctx, changed, func() (bool, error) {
			missing, err := r.book.Waiting(ctx, plan)
			return len(missing) == 0, err
		})
		if err == nil && ready {
			err = r.step(ctx, plan)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, pipeline.ErrFenced) {
			r.Log.Error("the change of the number of shards cannot go on, trying again", faultlog.Err(err))
			scale.Sleep(ctx)
		}
	}
	return nil
}

// step carries out the step that follows when all shards have taken theirs.
func (r growing) step(ctx context.Context, plan scale.Plan) error {
	if plan.To == 0 {
		r.Log.Info("all shards have begun", "of", plan.Of, "before", plan.From)
		return r.book.Done(ctx, plan, r.Config.Checkpoints.Keep)
	}
	split, direct, err := r.sources(ctx, plan)
	if err != nil {
		return err
	}
	shards, err := r.book.SealedShards(ctx, plan, func(p int) (*pipeline.Shard, error) {
		return r.NewShard(p, plan.Of, r.panes)
	})
	if err != nil {
		return err
	}
	next := plan.Next(shards, split, direct)
	r.Log.Info("all shards have sealed their states", "of", plan.Of, "next", plan.To)
	return r.book.Save(ctx, next)
}

// sources returns the topics that shards get their rows from, by the names that shards use.
func (r growing) sources(ctx context.Context, plan scale.Plan) (split []scale.Source,
	direct map[pipeline.Input]string, err error) {
	split, direct = plan.Sources(&r.Config)
	for i := range split {
		if split[i].Topic, err = sourceName(ctx, r.Client, split[i].Topic); err != nil {
			return nil, nil, err
		}
	}
	for in, topic := range direct {
		if direct[in], err = sourceName(ctx, r.Client, topic); err != nil {
			return nil, nil, err
		}
	}
	return split, direct, nil
}

// GrowthStatus is the object "scale" of /api/v1/status, while the number of shards changes.
type GrowthStatus struct {
	From  int       `json:"from"`
	To    int       `json:"to"`
	Step  string    `json:"step"`
	Waits []int     `json:"waits_for_shards"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
	Why   string    `json:"why"`
}

// scaledSince returns when the open scale order was given.
func scaledSince(rt *Engine) (since time.Time, open bool) {
	if rt.book == nil {
		return since, false
	}
	plan, _ := rt.book.Now()
	return plan.Since, plan.Open()
}

// statusWait bounds how long a status waits for the store.
const statusWait = 500 * time.Millisecond

// growth describes the progress of a scale order; nil = none is open.
func growth(ctx context.Context, b *scale.Book) *GrowthStatus {
	if b == nil {
		return nil
	}
	plan, _ := b.Now()
	if !plan.Open() {
		return nil
	}
	out := &GrowthStatus{From: plan.Of, To: plan.To, Step: "shards end", Since: plan.Since, By: plan.By, Why: plan.Why}
	if plan.To == 0 {
		out.From, out.To, out.Step = plan.From, plan.Of, "shards begin"
	}
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	var err error
	if out.Waits, err = b.Waiting(ctx, plan); err != nil {
		b.Log.Debug("whom an order waits for", "err", err)
	}
	return out
}

// String says it in words.
func (g *GrowthStatus) String() string {
	waits := strings.Trim(fmt.Sprint(g.Waits), "[]")
	if waits == "" {
		waits = "none"
	}
	return fmt.Sprintf("from %d to %d shards: %s, waits for shards: %s", g.From, g.To, g.Step, waits)
}

// ScaleOrder is a person's order to have more shards.
type ScaleOrder struct {
	Partitions int
	By, Why    string
}

// Scale gives an order, or joins one that is open, and returns when it has been carried out. tell is called with news
// of it. The processes of the deployment carry it out, even if this one ends.
func Scale(ctx context.Context, cfg config.Config, log *slog.Logger, o ScaleOrder, tell func(string)) error {
	r, now, stored, err := topologies(ctx, cfg, log)
	if err != nil {
		return err
	}
	was, ok := r.storedTopology(stored)
	if !ok {
		if err := HasStateDir(&cfg); err != nil {
			return fmt.Errorf("%w: no process of group %s has run yet, or not here: %w", scale.ErrOrder, cfg.Group, err)
		}
		return fmt.Errorf("%w: no process of group %s has run yet: make the topics with as many partitions as you want",
			scale.ErrOrder, cfg.Group)
	}
	if err := sameTopology(cfg.Group, was, now.known(was)); err != nil {
		return err
	}
	if err := r.openBook(ctx, was[0].partitions); err != nil {
		return err
	}
	topics := scale.Topics{Config: &cfg, Client: r.Client}
	if err := r.book.Order(ctx, topics, scale.Plan{To: o.Partitions, By: o.By, Why: o.Why}); err != nil {
		return err
	}
	follow, stop := context.WithCancel(ctx)
	defer stop()
	go r.book.Follow(follow)
	said := ""
	for ctx.Err() == nil {
		st := growth(ctx, r.book)
		if st == nil {
			break
		}
		if text := st.String(); text != said {
			said = text
			tell(text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(statusWait):
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the order is given, and goes on without this command: %w", ctx.Err())
	}
	plan, _ := r.book.Now()
	return topics.Widen(ctx, plan, tell)
}
