package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/internal/worldtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// listedSource yields the panes log from an offset on, until it ends or is killed.
type listedSource struct {
	panes []pipeline.Record
	next  int
	left  int // -1 = to the end
}

func (s *listedSource) Next(context.Context) (pipeline.Record, error) {
	switch {
	case s.left == 0:
		return pipeline.Record{}, worldtest.ErrKilled
	case s.next == len(s.panes):
		return pipeline.Record{}, io.EOF
	}
	s.left--
	s.next++
	return s.panes[s.next-1], nil
}

func (s *listedSource) Commit(context.Context, map[pipeline.Input]int64) error { return nil }
func (s *listedSource) CaughtUp() bool                                         { return false }
func (s *listedSource) Close() error                                           { return nil }

// stopAfterCheck pauses a process after it has checked who holds the task, and before it writes.
type stopAfterCheck struct {
	pipeline.CheckpointStore
	away func() // what other processes do meanwhile; called once
}

func (s *stopAfterCheck) Holds(ctx context.Context, key string, number uint64) error {
	err := s.CheckpointStore.Holds(ctx, key, number)
	if err == nil && number > 0 && s.away != nil {
		away := s.away
		s.away = nil
		away()
	}
	return err
}

// written is a sink that keeps everything in order.
type written struct{ ms []pipeline.Message }

func (w *written) Write(_ context.Context, ms []pipeline.Message) error {
	w.ms = append(w.ms, ms...)
	return nil
}

func (w *written) Close() error { return nil }

// identity returns what an output is about, and the number that orders the records of one identity: the end of the
// label pane of the decision.
func identity(t *testing.T, m pipeline.Message) (id, number string) {
	t.Helper()
	var v struct {
		At        string        `json:"at"`
		DecidedAt string        `json:"decided_at"`
		Window    record.Window `json:"window"`
	}
	if m.Stream == pipeline.StreamAlerts { // their window field is a name
		var a record.Alert
		if err := json.Unmarshal(m.Value, &a); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(m.Stream, string(m.Key)), a.At.String()
	}
	if err := json.Unmarshal(m.Value, &v); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(m.Stream, string(m.Key), v.Window.Name, v.Window.Start), max(v.At, v.DecidedAt)
}

// TestZombieChangesNothing stops a process after it has checked that it still holds the task, lets another process do
// the rest of the stream, and wakes the first. Its records then come after newer ones. Each of them equals, byte for
// byte, one that the other has written. A reader that takes, for each key and window, the record with the latest "at"
// (docs/operations.md, Fencing) reads what an undisturbed run has written.
func TestZombieChangesNothing(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	rows := batchtest.Rows(81, batchtest.Options{N: 1500, MaxLag: 10 * second, Unlabelled: .05, Sharpness: 2.5})
	s := defaultSetup()
	w := newWorld(t, s, worldtest.Stream(t, rows, 2, 10), 1).run(worldtest.AnyOrder)
	wantLast, wantAll := map[string]string{}, map[string]bool{}
	for _, m := range w.Outputs {
		id, _ := identity(t, m)
		wantAll[string(m.Stream)+string(m.Key)+string(m.Value)] = true
		wantLast[id] = string(m.Value)
	}
	behind := 0
	for _, at := range []int{len(w.Panes) / 4, len(w.Panes) / 2, 3 * len(w.Panes) / 4} {
		store, sink := &worldtest.FrailStore{}, &written{}
		begin := func(st pipeline.CheckpointStore, left int, interval time.Duration) error {
			return pipeline.Run(t.Context(), pipeline.Runner{Group: "g", Store: st, Sink: sink, Interval: interval,
				Log: quiet},
				func() (pipeline.Registered, error) {
					t := s.task()
					return pipeline.Registered{Task: t, Waiter: t}, nil
				},
				func(next map[pipeline.Input]int64) (pipeline.Opened, error) {
					return pipeline.Opened{Source: &listedSource{w.Panes, int(max(next[pipeline.Panes], 0)), left}}, nil
				})
		}
		if err := begin(store, at, 1); !errors.Is(err, worldtest.ErrKilled) {
			t.Fatal(err)
		}
		before := 0
		zombie := &stopAfterCheck{CheckpointStore: store}
		zombie.away = func() {
			if err := begin(store, -1, 1); err != nil {
				t.Errorf("the other process: %v", err)
			}
			before = len(sink.ms)
		}
		if err := begin(zombie, -1, time.Hour); !errors.Is(err, pipeline.ErrFenced) {
			t.Fatalf("the process that was away: %v, want %v", err, pipeline.ErrFenced)
		}
		behind += len(sink.ms) - before
		got, number := map[string]string{}, map[string]string{}
		for _, m := range sink.ms {
			if !wantAll[string(m.Stream)+string(m.Key)+string(m.Value)] {
				t.Errorf("a record that no undisturbed run writes: %s %s", m.Key, m.Value)
			}
			id, n := identity(t, m)
			if n >= number[id] {
				got[id], number[id] = string(m.Value), n
			}
		}
		for id, want := range wantLast {
			if got[id] != want {
				t.Errorf("%s: got %s, want %s", id, got[id], want)
			}
		}
	}
	if behind == 0 {
		t.Error("the process that was away wrote nothing behind the other: nothing was tested")
	}
}
