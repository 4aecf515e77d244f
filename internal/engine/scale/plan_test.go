package scale

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/dirstore"
)

// TestOneOrderAtATime: an open order refuses another, takes up its like, and one of two processes takes each step.
func TestOneOrderAtATime(t *testing.T) {
	ctx := context.Background()
	store := &dirstore.Store{Dir: t.TempDir(), Keep: 2}
	open := func() *Book {
		b := &Book{Store: store, Group: "g", Log: slog.New(slog.DiscardHandler), First: 4}
		if err := b.Load(ctx); err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, b := open(), open()
	if err := a.Save(ctx, Plan{Of: 4, To: 12, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Save(ctx, Plan{Of: 4, To: 6, By: "bob"}); !errors.Is(err, pipeline.ErrFenced) {
		t.Errorf("a second order: %v", err)
	}
	plan, changed := b.Now()
	if plan.To != 12 || plan.Of != 4 || !plan.Open() {
		t.Errorf("the second process has %+v", plan)
	}
	cfg := config.Default()
	topics := Topics{Config: &cfg}
	if err := b.Order(ctx, topics, Plan{To: 16}); err == nil || !strings.Contains(err.Error(),
		"an order for 12 is open") {
		t.Errorf("an order while one is open: %v", err)
	}
	if err := b.Order(ctx, topics, Plan{To: 12}); err != nil {
		t.Errorf("the same order: %v", err)
	}
	if missing, err := b.Waiting(ctx, plan); err != nil || len(missing) != 4 {
		t.Errorf("waits for %v, %v", missing, err)
	}
	if err := a.Save(ctx, Plan{Of: 12, Split: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told of the new plan")
	}
	for to, want := range map[int]string{5: "they only become more", 5000: "at most 4096"} {
		if err := b.Order(ctx, topics, Plan{To: to}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d shards of 12: %v", to, err)
		}
	}
}
