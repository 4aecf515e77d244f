package kafkaio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline"
)

// TestEndOfWorkIsLogged: a worker whose generation ends is silent, unless its last checkpoint was not saved; one that
// ends before is an error.
func TestEndOfWorkIsLogged(t *testing.T) {
	unsaved := fmt.Errorf("%w: up to panes 17: %w", pipeline.ErrUnsaved, pipeline.ErrFenced)
	for name, c := range map[string]struct {
		over bool // its generation
		err  error
		want []string
	}{
		"well":           {true, nil, nil},
		"canceled":       {true, fmt.Errorf("read: %w", context.Canceled), nil},
		"in what it did": {true, errors.New("connection closed"), nil},
		"refused at the end": {true, unsaved, []string{"level=WARN", "group=g", "generation=7", "partition=3",
			"up to panes 17", "another process has taken over"}},
		"before": {false, errors.New("disk full"), []string{"level=ERROR", "group=g", "generation=7",
			"partition=3", "disk full"}},
		"refused before": {false, pipeline.ErrFenced, []string{"level=ERROR", "generation=7",
			"another process has taken over"}},
	} {
		var out bytes.Buffer
		g := &Group{ID: "g", Log: slog.New(slog.NewTextHandler(&out, nil))}
		ctx, end := context.WithCancel(t.Context())
		gctx, over := context.WithCancel(t.Context())
		work := func(wctx context.Context) error {
			if c.over {
				over()
				<-wctx.Done()
			} else {
				time.AfterFunc(20*time.Millisecond, end) // the pause after it
			}
			return c.err
		}
		g.run(ctx, gctx, worker{generation: 7, partition: 3, work: work})
		end()
		over()
		got := out.String()
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: logs %q, want %q in it", name, got, w)
			}
		}
		if len(c.want) == 0 && got != "" {
			t.Errorf("%s: logs %q, want nothing", name, got)
		}
	}
}

// TestPartitionsAddedWhileAGroupBegins: partitions that come between the assignment and the first look of who watches
// are known by the number from before.
func TestPartitionsAddedWhileAGroupBegins(t *testing.T) {
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "x")
	g := &Group{ID: "g", Topics: []string{"x"}, Watch: true, Log: slog.New(slog.DiscardHandler),
		Client: &kafka.Client{Addr: kafka.TCP(brokers...), Transport: &kafka.Transport{}}}
	was := g.counts(t.Context())
	if was["x"] != 2 {
		t.Fatalf("%v, want 2 partitions", was)
	}
	ended := false
	g.watch(t.Context(), map[string]int{"x": 1}, func() { ended = true })
	if !ended {
		t.Error("the group goes on without the partition")
	}
}
