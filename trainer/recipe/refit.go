package recipe

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Refit trains once more, from the start, on training and validation rows together, for as many epochs as the best one
// of a training of cfg had (Report.Best) and by the same schedule; 0 epochs give the current head. What was chosen on
// the validation rows (epoch, rate, temperature) stays as it was chosen. The head has seen the validation rows, so it
// must be measured on others.
func Refit(ctx context.Context, cfg Config, in Input, best int, b backend.Backend) (*head.Head, error) {
	if best < 0 || best > cfg.Epochs {
		return nil, fmt.Errorf("refit: epoch %d, allowed 0..%d", best, cfg.Epochs)
	}
	if in.Train == nil || in.Valid == nil {
		return nil, fmt.Errorf("training and validation rows are required")
	}
	in.Train = joined(in.Train, in.Valid)
	cfg.KeepLast, cfg.Tempered, cfg.Patience = true, false, 0
	t, err := New(cfg, in, b)
	if err != nil {
		return nil, fmt.Errorf("refit: %w", err)
	}
	defer func() { _ = t.Close() }()
	for range best {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.Step(); err != nil {
			return nil, fmt.Errorf("refit: %w", err)
		}
	}
	return t.Head(), nil
}

// joined are the rows of a and then those of b: a view where they lie in one slab, else a copy of the features.
func joined(a, b *data.Set) *data.Set {
	n := a.N() + b.N()
	out := &data.Set{D: a.D, K: a.K, Y: append(append(make([]int32, 0, n), a.Y...), b.Y...)}
	if a.Stored == b.Stored && sameSlab(a.X, b.X) && sameSlab(a.Half, b.Half) {
		out.X, out.Half, out.Stored = a.X, a.Half, a.Stored
		out.Index = append(append(make([]int32, 0, n), places(a)...), places(b)...)
		return out
	}
	out.X = make([]float32, n*a.D)
	a.Gather(out.X, data.Rows(a.N()))
	b.Gather(out.X[a.N()*a.D:], data.Rows(b.N()))
	return out
}

func sameSlab[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func places(s *data.Set) []int32 {
	if s.Index != nil {
		return s.Index
	}
	return data.Rows(s.N())
}
