package scale

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/plumbline/plumbline/pipeline"
)

// shardKey is that of a shard's checkpoints.
func (b *Book) shardKey(p int) string { return fmt.Sprintf("%s/shards/shard-%05d", b.Group, p) }

// copyKey is that of what others take of a sealed shard.
func (b *Book) copyKey(to, p int) string {
	return fmt.Sprintf("%s/scale-%d/sealed-%05d", b.Group, to, p)
}

func (b *Book) begunKey(of, p int) string {
	return fmt.Sprintf("%s/scale-%d/begun-%05d", b.Group, of, p)
}

// there reports whether something is stored under a key that is written once.
func (b *Book) there(ctx context.Context, key string) (bool, error) {
	b.mu.Lock()
	known := b.seen[key]
	b.mu.Unlock()
	if known {
		return true, nil
	}
	err := b.Store.Holds(ctx, key, 0)
	if errors.Is(err, pipeline.ErrFenced) {
		b.saw(key)
		return true, nil
	}
	return false, err
}

func (b *Book) saw(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[key] = true
}

// put stores a checkpoint, unless there is one of that number.
func (b *Book) put(ctx context.Context, key string, number uint64, c pipeline.Checkpoint) error {
	err := b.Store.Save(ctx, key, number, c)
	if err == nil || errors.Is(err, pipeline.ErrFenced) {
		b.saw(key)
		return nil
	}
	return err
}

// missing lists the shards of which nothing is stored under their key.
func (b *Book) missing(ctx context.Context, n int, key func(p int) string) (out []int, err error) {
	for p := range n {
		ok, err := b.there(ctx, key(p))
		if err != nil {
			return nil, err
		}
		if !ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// Waiting lists the shards that a plan waits for.
func (b *Book) Waiting(ctx context.Context, p Plan) ([]int, error) {
	switch {
	case p.To != 0:
		return b.missing(ctx, p.Of, func(s int) string { return b.copyKey(p.To, s) })
	case p.From != 0:
		return b.missing(ctx, p.Of, func(s int) string { return b.begunKey(p.Of, s) })
	}
	return nil, nil
}

// newest is the latest checkpoint of a shard; nil = there is none. of and sealed are what its layout says.
func (b *Book) newest(ctx context.Context, p int) (st *pipeline.Stored, of int, sealed bool, err error) {
	stored, err := b.Store.Load(ctx, b.shardKey(p))
	if err != nil || len(stored) == 0 {
		return nil, 0, false, err
	}
	data, err := stored[0].Read()
	if err != nil {
		return nil, 0, false, err
	}
	of, sealed, err = pipeline.LayoutOf(data)
	return &stored[0], of, sealed, err
}

// Copy puts what others take of a shard, which has been sealed, where they find it. false: it has not been sealed.
// empty is a shard of that number.
func (b *Book) Copy(ctx context.Context, plan Plan, empty *pipeline.Shard) (bool, error) {
	key := b.copyKey(plan.To, empty.ID)
	if ok, err := b.there(ctx, key); ok || err != nil {
		return ok, err
	}
	st, of, sealed, err := b.newest(ctx, empty.ID)
	if err != nil || st == nil || of != plan.Of || !sealed {
		return false, nil // the shard says what is wrong with it
	}
	dir, err := os.MkdirTemp("", "plumbline-scale-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	c, err := pipeline.Amend(*st, empty.Moving(), dir)
	if err != nil {
		return false, err
	}
	err = b.put(ctx, key, 1, c)
	return err == nil, err
}

// copies are those of all shards that a plan replaces.
func (b *Book) copies(ctx context.Context, of, to int) ([]pipeline.Stored, error) {
	var out []pipeline.Stored
	for p := range of {
		stored, err := b.Store.Load(ctx, b.copyKey(to, p))
		if err != nil {
			return nil, err
		}
		if len(stored) == 0 {
			return nil, fmt.Errorf("the sealed state of shard %d of %d is gone", p, of)
		}
		out = append(out, stored[0])
	}
	return out, nil
}

// Begin makes the first checkpoint of a shard, unless it has one. build makes an empty shard of a number of them.
func (b *Book) Begin(ctx context.Context, plan Plan, p int, build func(p, of int) (*pipeline.Shard, error)) error {
	key := b.begunKey(plan.Of, p)
	if ok, err := b.there(ctx, key); ok || err != nil {
		return err
	}
	own, of, sealed, err := b.newest(ctx, p)
	if err != nil {
		return fmt.Errorf("the state of shard %d cannot be read: %w", p, err)
	}
	if own == nil || of != plan.Of {
		if own != nil && (of != plan.From || !sealed) {
			return fmt.Errorf("the state of shard %d is one of %d shards, sealed: %t; of %d were sealed", p, of, sealed,
				plan.From)
		}
		if err := b.grow(ctx, plan, own, p, build); err != nil {
			return err
		}
	}
	return b.mark(ctx, key, 1)
}

func (b *Book) grow(ctx context.Context, plan Plan, own *pipeline.Stored, p int,
	build func(p, of int) (*pipeline.Shard, error)) (err error) {
	g := pipeline.Growth{Own: own, Fences: plan.Fences,
		Build: func(id int) (*pipeline.Shard, error) { return build(id, plan.From) }}
	if g.Sealed, err = b.copies(ctx, plan.From, plan.Of); err != nil {
		return err
	}
	s, err := build(p, plan.Of)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Grow(g); err != nil {
		return fmt.Errorf("first state of shard %d of %d: %w", p, plan.Of, err)
	}
	c, err := pipeline.EncodeCheckpoint(s.Sections())
	if err != nil {
		return err
	}
	number := uint64(1)
	if own != nil {
		number = own.Number + 1
	}
	return b.put(ctx, b.shardKey(p), number, c)
}

// mark stores nothing of any size under a key.
func (b *Book) mark(ctx context.Context, key string, number uint64) error {
	c, err := pipeline.EncodeCheckpoint(nil)
	if err != nil {
		return err
	}
	return b.put(ctx, key, number, c)
}

// SealedShards are the sealed shards of a plan as far as Plan.Next needs them. build makes an empty one.
func (b *Book) SealedShards(ctx context.Context, plan Plan, build func(p int) (*pipeline.Shard, error)) (
	[]*pipeline.Shard, error) {
	copies, err := b.copies(ctx, plan.Of, plan.To)
	if err != nil {
		return nil, err
	}
	var shards []*pipeline.Shard
	for p, st := range copies {
		s, err := build(p)
		if err == nil {
			err = s.RestorePlace(st)
		}
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// Next is the plan that follows when all shards are sealed: what of the topics they had taken is in it.
func (p *Plan) Next(shards []*pipeline.Shard, split []Source, direct map[pipeline.Input]string) Plan {
	next := Plan{Of: p.To, From: p.Of, Split: true, By: p.By, Why: p.Why, Since: p.Since}
	for in, topic := range direct {
		for _, s := range shards {
			next.Fences = append(next.Fences, s.DirectFence(in, topic))
		}
	}
	for _, s := range split {
		next.Fences = append(next.Fences, pipeline.SplitFences(shards, s.Input, s.Topic, p.Fences, !p.Split)...)
	}
	return next
}

// Done removes what an order has left in the store, and closes it. keep is how many checkpoints of a key stay.
func (b *Book) Done(ctx context.Context, plan Plan, keep int) error {
	for p := range plan.From {
		key := b.copyKey(plan.Of, p)
		stored, err := b.Store.Load(ctx, key)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			continue // somebody has removed it
		}
		for i := range uint64(max(keep, 2)) {
			if err := b.mark(ctx, key, stored[0].Number+1+i); err != nil {
				return err
			}
		}
	}
	plan.From = 0
	return b.Save(ctx, plan)
}
