package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// TestProgressIsNoFailure: attempts that come further than those before them may fail or be killed more often than is
// allowed; those that do not may not.
func TestProgressIsNoFailure(t *testing.T) {
	crash := errors.New("crash")
	tenths := func(n int) float64 { return 0.1 * float64(n) }
	for name, c := range map[string]struct {
		done     func(attempt int) float64
		killed   bool
		outcome  string
		attempts int
	}{
		"further each time":    {tenths, false, record.OutcomeTrained, 9},
		"killed, but further":  {tenths, true, record.OutcomeTrained, 9},
		"always to the same":   {func(int) float64 { return 0.5 }, false, record.OutcomeFailed, 4},
		"killed at the same":   {func(int) float64 { return 0.5 }, true, record.OutcomeFailed, 4},
		"hardly any further":   {func(n int) float64 { return 0.5 + 0.001*float64(n) }, false, record.OutcomeFailed, 4},
		"further, and then no": {func(n int) float64 { return tenths(min(n, 5)) }, false, record.OutcomeFailed, 8},
	} {
		attempts := func(t *testing.T) {
			j, dir, n := newJournal(), t.TempDir(), 0
			beaten := make(chan struct{}, 100)
			r := runnerFunc(func(ctx context.Context, task Task) error {
				if n++; n == 9 {
					return good(ctx, task)
				}
				task.Progress("epoch", c.done(n), 1)
				if !c.killed {
					synctest.Wait() // the service has taken it
					return crash
				}
				beaten <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			})
			tr := j.trainer(t, "a", dir, r)
			id := j.request(t, 1).ID
			for c.killed && !j.closed(id) {
				select {
				case <-beaten:
					j.awaitBeat(t, id, c.done(n))
					tr.cut()
					tr = j.trainer(t, "a", dir, r)
				case <-j.change():
				}
			}
			job := j.await(t, tr, id, ended)
			tr.stop()
			if job.Result.Outcome != c.outcome || n != c.attempts {
				t.Errorf("got %s after %d attempts: %s; want %s after %d",
					job.Result.Outcome, n, job.Result.Why, c.outcome, c.attempts)
			}
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, attempts) })
	}
}

// TestFurthest: how far an attempt came counts however it ended, so that a failure on the way there is no progress.
func TestFurthest(t *testing.T) {
	for _, end := range []string{beatFailed, beatHeld, beatStopped} {
		q, now := NewQueue(), time.Now()
		for i, b := range []record.Job{{State: end, Done: 0.5}, {State: beatFailed, Done: 0.3}} {
			b.Schema, b.Kind, b.ID, b.Attempt, b.Trainer = 1, record.HeadJob, "m/1+head1", i+1, "a"
			if err := q.Take(&b, now); err != nil {
				t.Fatal(err)
			}
		}
		if j := q.Find("m/1+head1"); j.Failures != 1 || j.Furthest != 0.5 {
			t.Errorf("%s at half the work, then failed before it: got %d failures, furthest %g; want 1, 0.5",
				end, j.Failures, j.Furthest)
		}
	}
}

// change is closed by the next entry.
func (j *journal) change() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.grown
}

// closed says whether the log has a result of a job.
func (j *journal) closed(id string) bool {
	return j.has(func(rec any) bool {
		h, ok := rec.(*record.Head)
		return ok && h.ID == id
	})
}

// awaitBeat waits until the log says how far a job is.
func (j *journal) awaitBeat(t *testing.T, id string, done float64) {
	t.Helper()
	for {
		grown := j.change()
		if j.has(func(rec any) bool {
			b, ok := rec.(*record.Job)
			return ok && b.ID == id && b.Done == done
		}) {
			return
		}
		<-grown
	}
}

func (j *journal) has(wanted func(rec any) bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e.Record != nil && wanted(e.Record) {
			return true
		}
	}
	return false
}

// TestCancelledFirst: of a cancellation and a result the first in the log counts.
func TestCancelledFirst(t *testing.T) {
	cancel := &record.Order{Schema: 1, Kind: record.HeadCancel, ID: "m/1+head1", Action: "cancel", By: "me"}
	trained := &record.Head{Schema: 1, Kind: record.HeadTrained, ID: "m/1+head1", Outcome: record.OutcomeTrained}
	for want, log := range map[string][]any{
		StateCancelled:        {cancel, trained},
		record.OutcomeTrained: {trained, cancel},
	} {
		j := newJournal()
		q := NewQueue()
		r := j.request(t, 1)
		if err := q.TakeRequest(&r, time.Time{}); err != nil {
			t.Fatal(err)
		}
		for _, rec := range log {
			if err := q.Take(rec, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if job := q.Find(r.ID); job.State() != want || (job.Result == nil) == (job.Cancel == nil) {
			t.Errorf("got %s, result %v, cancellation %v; want %s and one of them",
				job.State(), job.Result, job.Cancel, want)
		}
	}
}

// countingGEMM multiplies, and calls then after so many products.
type countingGEMM struct {
	head.Gonum
	n, at int
	then  func()
}

func (g *countingGEMM) Gemm(alpha float32, a, b head.Matrix, beta float32, c head.Matrix) {
	if g.n++; g.n == g.at {
		g.then()
	}
	g.Gonum.Gemm(alpha, a, b, beta, c)
}

// smallRows are rows of two classes, as many as make an epoch of hundreds of mini-batches.
func smallRows(n int) *data.Set {
	s := &data.Set{D: 3, K: 2}
	for i := range n {
		y := int32(i % 2)
		s.X = append(s.X, float32(y), float32(i%7)/7, 1)
		s.Y = append(s.Y, y)
	}
	return s
}

func smallRecipes(gemm head.GEMM, log *slog.Logger) *Recipes {
	return &Recipes{
		Load: func(context.Context, record.Finetune) (Rows, error) {
			return Rows{Train: smallRows(20000), Valid: smallRows(100)}, nil
		},
		Plan: func(_ string, seed uint64) ([]recipe.Named, bool, error) {
			plan, err := recipe.Lookup("ce", seed)
			return plan, false, err
		},
		Backend: func() (backend.Backend, error) { return backend.Go{GEMM: gemm}, nil },
		GEMM:    head.Gonum{},
		Bins:    15,
		Log:     log,
	}
}

// TestCancelInAnEpoch: a cancelled training ends before its next mini-batch, not with its epoch.
func TestCancelInAnEpoch(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gemm := &countingGEMM{at: 20, then: func() { cancel(errCancelled) }}
	dir := t.TempDir()
	task := Task{Dir: dir, Result: dir, Progress: func(string, float64, float64) {}}
	err := smallRecipes(gemm, nil).Run(ctx, task)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	// A mini-batch has two products.
	if after := gemm.n - gemm.at; after > 2 {
		t.Errorf("%d products after the cancellation, want at most 2", after)
	}
}

// TestDamagedCheckpoint: one that cannot be used is logged, and the training begins anew.
func TestDamagedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "checkpoint-ce"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := filepath.Join(dir, "result")
	if err := os.Mkdir(result, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	task := Task{
		Request:  record.Finetune{ID: "m/1+head1", Classes: 2},
		Dir:      dir,
		Result:   result,
		Progress: func(string, float64, float64) {},
	}
	if err := smallRecipes(head.Gonum{}, slog.New(slog.NewTextHandler(&log, nil))).Run(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"checkpoint cannot be used", "job=m/1+head1", "checkpoint-ce", "7 bytes"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is without %q: %s", want, &log)
		}
	}
}
