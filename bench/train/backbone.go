package main

import (
	"context"
	"sync"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// backbone is a wide layer on the network's features, trained with its head on all training rows: the features and the
// head of a network that was trained another way, since the network itself cannot be trained again here.
type backbone struct {
	hidden head.Layer
	last   *head.Head

	mu   sync.Mutex
	sets map[string]*data.Set
}

type backboneKind struct {
	name, title, loss string
	mixup             float64
}

func backboneKinds() []backboneKind {
	return []backboneKind{
		{"plain", "with cross-entropy", "ce", 0},
		{"smoothing", "with label smoothing (.1)", "smoothing{epsilon:0.1}", 0},
		{"mixup", "with mixup (α = 1)", "ce", 1},
	}
}

const (
	backboneWidth  = 256
	backboneEpochs = 20
)

var backboneLock sync.Mutex

func (s *source) backboneOf(k backboneKind) (*backbone, error) {
	backboneLock.Lock()
	defer backboneLock.Unlock()
	if b := s.backbones[k.name]; b != nil {
		return b, nil
	}
	c := recipe.CrossEntropy()
	c.Loss, c.Mixup, c.Head, c.Width, c.Epochs, c.LR, c.KeepLast = k.loss, k.mixup, recipe.HeadBottleneck,
		backboneWidth, backboneEpochs, 0.05, true
	all := s.sets["train_features"]
	h, _, err := recipe.Run(context.Background(), c, recipe.Input{Train: all, Valid: all.Select(data.Rows(1000))},
		backend.Go{GEMM: products()}, nil)
	if err != nil {
		return nil, err
	}
	b := &backbone{hidden: h.Layers[0], last: &head.Head{Layers: h.Layers[1:]}, sets: map[string]*data.Set{}}
	s.backbones[k.name] = b
	return b, nil
}

// of are the hidden activations of an array's rows.
func (b *backbone) of(s *source, array string) *data.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.sets[array]; w != nil {
		return w
	}
	from := s.sets[array]
	one := &head.Head{Layers: []head.Layer{b.hidden}}
	out := &data.Set{D: b.hidden.Out, K: from.K, X: logitsOf(one, from), Y: from.Y}
	for i, v := range out.X {
		out.X[i] = max(v, 0)
	}
	b.sets[array] = out
	return out
}
