package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/engine/reset"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/pipeline"
)

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

// StatusWait bounds how long a status waits for the store.
const StatusWait = 500 * time.Millisecond

// Growth describes the progress of a scale order; nil = none is open.
func Growth(ctx context.Context, b *scale.Book) *GrowthStatus {
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
	ctx, cancel := context.WithTimeout(ctx, StatusWait)
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
func (d *Deployment) Scale(ctx context.Context, o ScaleOrder, tell func(string)) error {
	group := d.Config.Group
	now, stored, err := d.join(ctx)
	if err != nil {
		return err
	}
	was, ok, err := d.record().newest(stored)
	if err != nil {
		return err
	}
	if !ok {
		if err := HasStateDir(d.Config); err != nil {
			return fmt.Errorf("%w: no process of group %s has run yet, or not here: %w", scale.ErrOrder, group, err)
		}
		return fmt.Errorf("%w: no process of group %s has run yet: make the topics with as many partitions as you want",
			scale.ErrOrder, group)
	}
	if err := sameTopology(group, was, now.known(was)); err != nil {
		return err
	}
	if err := d.openBook(ctx, was[0].partitions); err != nil {
		return err
	}
	if err := d.Book.Order(ctx, d.scaleTopics(), scale.Plan{To: o.Partitions, By: o.By, Why: o.Why}); err != nil {
		return err
	}
	follow, stop := context.WithCancel(ctx)
	defer stop()
	go d.Book.Follow(follow)
	said := ""
	for ctx.Err() == nil {
		st := Growth(ctx, d.Book)
		if st == nil {
			break
		}
		if text := st.String(); text != said {
			said = text
			tell(text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(StatusWait):
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the order is given, and goes on without this command: %w", ctx.Err())
	}
	return d.scaleTopics().Widen(ctx, d.Plan(), tell)
}

// Reset carries out a person's order to let tasks begin anew, or says what it would do. readable returns an error where
// this build cannot read a checkpoint of a stage.
func (d *Deployment) Reset(ctx context.Context, o reset.Order, accept bool,
	readable func(stage string, data []byte) error) ([]*reset.Change, error) {
	if err := HasStateDir(d.Config); err != nil {
		return nil, fmt.Errorf("%w: %w. Where the directory itself is lost, make it first", reset.ErrOrder, err)
	}
	now, stored, err := d.join(ctx)
	if err != nil {
		return nil, err
	}
	was, ok, err := d.record().newest(stored)
	if err != nil {
		return nil, err
	}
	again := map[string]bool{}
	if ok {
		again = remade(was, now)
	}
	if ok && len(again) == 0 {
		now = now.known(was)
	}
	if err := d.openBook(ctx, now[0].partitions); err != nil {
		return nil, err
	}
	shards := d.Plan()
	if shards.Open() {
		return nil, fmt.Errorf("%w: the number of shards is being changed: %s", reset.ErrOrder, Growth(ctx, d.Book))
	}
	at := &reset.Reset{Topics: d.Remains(), Store: d.Store, Shards: shards.Of, Models: now[2].partitions, Remade: again,
		Readable: readable}
	if at.Relays, err = d.relays(ctx); err != nil {
		return nil, err
	}
	plan, err := at.Plan(ctx, o)
	if err != nil || !accept {
		return plan, err
	}
	if err := at.Apply(ctx, plan); err != nil || len(at.Remade) == 0 {
		return plan, err
	}
	return plan, d.record().save(ctx, now, stored)
}

// Foreign returns how many tasks have checkpoints, and for those whose newest one this build cannot read why not.
// readable is that of Reset.
func (d *Deployment) Foreign(ctx context.Context, readable func(stage string, data []byte) error) (tasks int,
	foreign []error, err error) {
	if err := HasStateDir(d.Config); err != nil {
		return 0, nil, nil // there is no state yet, or other errors tell
	}
	now, _, err := d.join(ctx)
	if err != nil {
		return 0, nil, err
	}
	var unread error // of the first that cannot be looked at
	least := map[string]int{"models": now[2].partitions, "shards": now[0].partitions}
	for _, stage := range []string{"models", "shards"} {
		for p := 0; ; p++ { // more shards than partitions have come by scale
			stored, err := d.Store.Load(ctx, reset.Key(d.Config.Group, stage, p))
			if err != nil {
				return 0, nil, err
			}
			if len(stored) == 0 && p >= least[stage] {
				break
			}
			if len(stored) == 0 {
				continue
			}
			tasks++
			data, err := stored[0].Read()
			if err == nil {
				err = readable(stage, data)
			}
			format := (*pipeline.FormatError)(nil)
			switch {
			case errors.As(err, &format):
				foreign = append(foreign, fmt.Errorf("%s: %w", reset.Task(stage, p), format))
			case err != nil:
				unread = cmp.Or(unread, fmt.Errorf("%s: %w", reset.Task(stage, p), err))
			}
		}
	}
	if foreign == nil && unread != nil {
		return 0, nil, unread
	}
	return tasks, foreign, nil
}

// TopicsMoved notes that the deployment's topics, with their records and offsets, have been copied to the topics that
// the configuration now names.
func (d *Deployment) TopicsMoved(ctx context.Context) error {
	now, stored, err := d.join(ctx)
	if err != nil || len(stored) == 0 { // nothing has run yet
		return err
	}
	was, ok, err := d.record().newest(stored)
	if err != nil {
		return err
	}
	if ok {
		now = now.known(was)
	}
	return d.record().save(ctx, now, stored)
}

// join connects to a deployment from outside. now is its topics' present state, stored what its processes have
// recorded; none = none has run yet.
func (d *Deployment) join(ctx context.Context) (now topology, stored []pipeline.Stored, err error) {
	if err = d.Connect(); err != nil {
		return now, nil, err
	}
	if now, err = d.ask(ctx); err != nil {
		return now, nil, err
	}
	if err = d.openStore(ctx); err != nil {
		return now, nil, err
	}
	stored, err = d.Store.Load(ctx, d.record().key())
	return now, stored, err
}
