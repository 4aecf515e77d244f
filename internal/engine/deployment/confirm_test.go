package deployment

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTasksShareTheQuestion: however many tasks ask whether topics are the same, the brokers are asked one question at
// a time, and each task gets the answer to one that was asked after it came.
func TestTasksShareTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks, turns = 24, 20
		asked := 0
		var remade error
		var mu sync.Mutex
		c := &Confirmer{ask: func(context.Context) error {
			mu.Lock()
			asked++
			err := remade
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			return err
		}}
		every := func(confirm func(context.Context) error) {
			var all sync.WaitGroup
			for range tasks {
				all.Go(func() {
					for range turns {
						if err := confirm(t.Context()); err != nil {
							t.Error(err)
						}
						time.Sleep(50 * time.Millisecond)
					}
				})
			}
			all.Wait()
		}
		every(c.Now)
		if asked < turns || asked > tasks*turns/4 {
			t.Errorf("%d questions for %d checkpoints, want one for those of a moment", asked, tasks*turns)
		}
		asked = 0
		every(c.Lately) // for a second
		if asked > 3 {
			t.Errorf("%d questions in little more than a second", asked)
		}
		before := asked
		c.Doubt()
		time.Sleep(time.Millisecond)
		for range 2 {
			_ = c.Lately(t.Context())
		}
		if asked != before+1 {
			t.Errorf("%d questions after a doubt, want one", asked-before)
		}
		mu.Lock()
		remade = errors.New("made again")
		mu.Unlock()
		if err := c.Now(t.Context()); err == nil {
			t.Error("a topic that was made again is not known at once")
		}
		time.Sleep(confirmEvery)
		if err := c.Lately(t.Context()); err == nil {
			t.Error("a topic that was made again is not known after a second")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Now(gone); err != nil {
			t.Errorf("who cannot wait: %v", err)
		}
		time.Sleep(confirmEvery) // the last question
	})
}
