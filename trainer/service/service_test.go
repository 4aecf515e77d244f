package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/head"
)

// journal is the two topics in memory: one total order, which every reader gets from its start.
type journal struct {
	mu      sync.Mutex
	entries []Entry
	grown   chan struct{}
	most    int // bytes of a record that it takes; 0: any
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

func (j *journal) add(e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
	close(j.grown)
	j.grown = make(chan struct{})
}

func (j *journal) request(t *testing.T, n int) record.Finetune {
	t.Helper()
	r := record.Finetune{
		Schema:        1,
		Model:         "m",
		Version:       "1",
		Number:        n,
		ShadowVersion: fmt.Sprintf("1+head%d", n),
		Classes:       2,
		Recipe:        "r",
		ShadowFrom:    record.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()),
	}
	r.ID = "m/" + r.ShadowVersion
	j.add(Entry{Record: &r})
	return r
}

// feed hands a service all entries, those that come later too, until ctx is done.
func (j *journal) feed(ctx context.Context, s *Service) {
	caughtUp := false
	for at := 0; ; {
		j.mu.Lock()
		part, grown := j.entries[at:], j.grown
		at = len(j.entries)
		j.mu.Unlock()
		for _, e := range part {
			s.Take(ctx, e)
		}
		if !caughtUp {
			caughtUp = true
			s.Take(ctx, Entry{CaughtUp: true})
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return
		}
	}
}

// results are the results in the log, all of them.
func (j *journal) results(t *testing.T) (out []record.Head) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if h, ok := e.Record.(*record.Head); ok {
			out = append(out, *h)
		}
	}
	return out
}

// runnerFunc is a Runner.
type runnerFunc func(ctx context.Context, t Task) error

func (f runnerFunc) Run(ctx context.Context, t Task) error { return f(ctx, t) }

// good leaves a small head.
func good(_ context.Context, t Task) error {
	t.Progress("good", 0.5, 1)
	return WriteResult(t.Result, Report{Outcome: record.OutcomeTrained, Why: "good"}, head.FreshLinear(3, 2, 1))
}

// testBeat is time by the clock of a test's bubble, which goes on when all goroutines wait.
const testBeat = 10 * time.Millisecond

// trainer is a service that works on a journal.
type trainer struct {
	*Service
	stop func() // orderly
	cut  func() // as a kill does: nothing is published any more
	done chan error
}

func (j *journal) trainer(t *testing.T, name, dir string, r Runner) *trainer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	dead := false
	publish := func(_ context.Context, _, _ string, value []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if dead {
			return errors.New("killed")
		}
		if j.most > 0 && len(value) > j.most {
			return fmt.Errorf("%w", ErrTooLarge)
		}
		e, err := ReadHeads(value)
		if err == nil {
			j.add(e)
		}
		return err
	}
	cfg := Config{
		Name:        name,
		Dir:         dir,
		Heartbeat:   testBeat,
		InlineBytes: 1 << 20,
		Keep:        100,
		Attempts:    3,
		LostAfter:   20 * testBeat,
	}
	s := New(Options{Config: cfg, Pause: testBeat, Runner: r, Publish: publish, Log: slog.New(slog.DiscardHandler)})
	tr := &trainer{Service: s, done: make(chan error, 1)}
	go j.feed(ctx, s)
	go func() { tr.done <- s.Run(ctx) }()
	end := func() {
		cancel()
		<-tr.done
		tr.done <- nil
	}
	tr.stop = end
	tr.cut = func() {
		mu.Lock()
		dead = true
		mu.Unlock()
		end()
	}
	t.Cleanup(end)
	return tr
}

// await polls until a job is as wanted.
func (j *journal) await(t *testing.T, tr *trainer, id string, wanted func(Job) bool) Job {
	t.Helper()
	return eventually.Get(t, id+" is as wanted", func() (Job, bool) {
		for _, job := range tr.Jobs() {
			if job.Request.ID == id {
				return job, wanted(job)
			}
		}
		return Job{}, false
	})
}

func ended(j Job) bool { return !j.Open() }

// TestJobsInOrder: one job at a time, in the order of requests; the result has the head and its artefacts.
func TestJobsInOrder(t *testing.T) { synctest.Test(t, testJobsInOrder) }

func testJobsInOrder(t *testing.T) {
	j := newJournal()
	var mu sync.Mutex
	var order []string
	busy := false
	tr := j.trainer(t, "a", t.TempDir(), runnerFunc(func(ctx context.Context, task Task) error {
		mu.Lock()
		if busy {
			t.Error("two jobs at a time")
		}
		busy = true
		order = append(order, task.Request.ID)
		mu.Unlock()
		time.Sleep(2 * testBeat)
		mu.Lock()
		busy = false
		mu.Unlock()
		return good(ctx, task)
	}))
	var ids []string
	for n := range 3 {
		ids = append(ids, j.request(t, n+1).ID)
	}
	job := j.await(t, tr, ids[2], ended)
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(order, ids) {
		t.Errorf("got %v, want %v", order, ids)
	}
	r := job.Result
	if r.Outcome != record.OutcomeTrained || r.Features != 3 || r.Classes != 2 || len(r.Artefacts) != 3 ||
		r.EffectiveFrom != job.Request.ShadowFrom {
		t.Errorf("got %+v", r)
	}
	checkWeights(t, r)
}

// checkWeights reads a result's head from its record and from its artefact, which it then damages.
func checkWeights(t *testing.T, r *record.Head) {
	t.Helper()
	h, err := Weights(*r)
	if err != nil || h.D() != 3 {
		t.Errorf("weights: got %v, %v", h, err)
	}
	byFile := *r
	byFile.Weights = nil
	if h, err := Weights(byFile); err != nil || h.K() != 2 {
		t.Errorf("weights of the artefact: got %v, %v", h, err)
	}
	if err := os.WriteFile(r.Artefacts[0].Path, r.Weights[:len(r.Weights)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Weights(byFile); err == nil {
		t.Error("weights of a damaged artefact: got no error")
	}
}

// TestFailures: an attempt that fails is made again, as often as is allowed; one that is hopeless is not. A result that
// is unusable is a failure.
func TestFailures(t *testing.T) {
	type run func(n int, ctx context.Context, t Task) error
	outOfMemory := errors.New("out of memory")
	for name, c := range map[string]struct {
		run      run
		outcome  string
		why      string
		attempts int
	}{
		"second": {func(n int, ctx context.Context, task Task) error {
			if n == 1 {
				return outOfMemory
			}
			return good(ctx, task)
		}, record.OutcomeTrained, "good", 2},
		"always": {func(int, context.Context, Task) error {
			return outOfMemory
		}, record.OutcomeFailed, "given up after 3 attempts: out of memory", 3},
		"hopeless": {func(int, context.Context, Task) error {
			return fmt.Errorf("%w: recipe", ErrHopeless)
		}, record.OutcomeFailed, "cannot be trained: recipe", 1},
		"classes": {func(_ int, _ context.Context, task Task) error {
			return WriteResult(task.Result, Report{Outcome: record.OutcomeTrained}, head.FreshLinear(3, 5, 1))
		}, record.OutcomeFailed, "5 classes, the request is of 2", 3},
		"configuration": {func(n int, ctx context.Context, task Task) error {
			if n <= 5 {
				return fmt.Errorf("%w: trainer.heads", ErrSetup)
			}
			return good(ctx, task)
		}, record.OutcomeTrained, "good", 6},
		"full disk": {func(n int, ctx context.Context, task Task) error {
			if n <= 5 {
				return &os.PathError{Op: "write", Path: "checkpoint", Err: syscall.ENOSPC}
			}
			return good(ctx, task)
		}, record.OutcomeTrained, "good", 6},
		"quota": {func(n int, ctx context.Context, task Task) error {
			if n <= 5 {
				return &os.PathError{Op: "write", Path: "checkpoint", Err: syscall.EDQUOT}
			}
			return good(ctx, task)
		}, record.OutcomeTrained, "good", 6},
		"nothing": {func(int, context.Context, Task) error { return nil }, record.OutcomeFailed, FileReport, 3},
		"unchanged": {func(_ int, _ context.Context, task Task) error {
			return WriteResult(task.Result, Report{Outcome: record.OutcomeUnchanged, Why: "no better"}, nil)
		}, record.OutcomeUnchanged, "no better", 1},
	} {
		attempts := func(t *testing.T) {
			j, dir, n := newJournal(), t.TempDir(), 0
			tr := j.trainer(t, "a", dir, runnerFunc(func(ctx context.Context, task Task) error {
				n++
				return c.run(n, ctx, task)
			}))
			job := j.await(t, tr, j.request(t, 1).ID, ended)
			if job.Result.Outcome != c.outcome || !strings.Contains(job.Result.Why, c.why) {
				t.Errorf("got %s: %s; want %s: %s", job.Result.Outcome, job.Result.Why, c.outcome, c.why)
			}
			tr.stop()
			if n != c.attempts {
				t.Errorf("got %d attempts, want %d", n, c.attempts)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, attempts) })
	}
}

// TestCancel ends a job that runs and one that waits; what was running publishes nothing.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		began := make(chan string, 4)
		tr := j.trainer(t, "a", t.TempDir(), runnerFunc(func(ctx context.Context, task Task) error {
			began <- task.Request.ID
			if task.Request.Number == 3 {
				return good(ctx, task)
			}
			<-ctx.Done()
			return ctx.Err()
		}))
		first, second, third := j.request(t, 1), j.request(t, 2), j.request(t, 3)
		<-began
		for _, r := range []record.Finetune{second, first} {
			cancel := &record.Order{Schema: 1, Kind: record.HeadCancel, ID: r.ID, Action: "cancel", By: "me"}
			j.add(Entry{Record: cancel})
		}
		j.await(t, tr, third.ID, ended)
		for _, r := range []record.Finetune{first, second} {
			if job := j.await(t, tr, r.ID, ended); job.State() != StateCancelled {
				t.Errorf("%s: got %s, want cancelled", r.ID, job.State())
			}
		}
		if got := j.results(t); len(got) != 1 || got[0].ID != third.ID {
			t.Errorf("got results %v, want one, of %s", got, third.ID)
		}
	})
}

// TestTwoTrainers share jobs: each is done once.
func TestTwoTrainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var mu sync.Mutex
		runs := map[string]int{}
		r := runnerFunc(func(ctx context.Context, task Task) error {
			mu.Lock()
			runs[task.Request.ID]++
			mu.Unlock()
			time.Sleep(2 * testBeat)
			return good(ctx, task)
		})
		a := j.trainer(t, "a", t.TempDir(), r)
		j.trainer(t, "b", t.TempDir(), r)
		var last record.Finetune
		for n := range 8 {
			last = j.request(t, n+1)
		}
		for n := range 8 {
			j.await(t, a, fmt.Sprintf("m/1+head%d", n+1), ended)
		}
		j.await(t, a, last.ID, ended)
		mu.Lock()
		defer mu.Unlock()
		for id, n := range runs {
			if n != 1 {
				t.Errorf("%s was trained %d times", id, n)
			}
		}
		if n := len(j.results(t)); n != 8 {
			t.Errorf("got %d results, want 8", n)
		}
	})
}

// TestLostTrainer: a trainer that is killed counts as lost, and another takes its job over. One that was killed with
// its result on disk and not published publishes that without training again.
func TestLostTrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		hang := make(chan struct{})
		a := j.trainer(t, "a", t.TempDir(), runnerFunc(func(ctx context.Context, _ Task) error {
			close(hang)
			<-ctx.Done()
			return ctx.Err()
		}))
		r := j.request(t, 1)
		<-hang
		a.cut()
		b := j.trainer(t, "b", t.TempDir(), runnerFunc(good))
		job := j.await(t, b, r.ID, ended)
		if job.Result.Trainer != "b" || job.Result.Attempt != 2 || job.Failures != 1 {
			t.Errorf("got %+v after %d failures, want attempt 2 of b after 1", job.Result, job.Failures)
		}

		dir := t.TempDir()
		r = j.request(t, 2)
		b.stop()
		c := j.trainer(t, "c", dir, runnerFunc(good))
		job = j.await(t, c, r.ID, ended)
		c.stop()
		// The same log without the result: as if c had been killed before it was published.
		cutLog := newJournal()
		for _, e := range j.entries {
			if h, ok := e.Record.(*record.Head); !ok || h.ID != r.ID {
				cutLog.add(e)
			}
		}
		again := cutLog.trainer(t, "c", dir, runnerFunc(func(context.Context, Task) error {
			t.Error("trained again although the result was there")
			return errors.New("no")
		}))
		second := cutLog.await(t, again, r.ID, ended)
		if second.Result.Artefacts[0].SHA256 != job.Result.Artefacts[0].SHA256 {
			t.Errorf("got another head than before")
		}
	})
}

// TestStoppedTrainer: an orderly stop counts for no attempt, and the next trainer need not wait.
func TestStoppedTrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		r := j.request(t, 1)
		for range 5 {
			began := make(chan struct{})
			a := j.trainer(t, "a", t.TempDir(), runnerFunc(func(ctx context.Context, _ Task) error {
				close(began)
				<-ctx.Done()
				return ctx.Err()
			}))
			<-began
			a.stop()
		}
		b := j.trainer(t, "b", t.TempDir(), runnerFunc(good))
		if job := j.await(t, b, r.ID, ended); job.Result.Outcome != record.OutcomeTrained || job.Failures != 0 {
			t.Errorf("got %+v after %d failures", job.Result, job.Failures)
		}
	})
}

// TestResultOfAnAttemptThatWasKilled: a result that is there is published without another training, and files that
// earlier attempts left half written are gone.
func TestResultOfAnAttemptThatWasKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := newJournal()
		r := first.request(t, 1)
		a := first.trainer(t, "a", dir, runnerFunc(good))
		first.await(t, a, r.ID, ended)
		a.stop()
		left := filepath.Join(dir, dirName(r.ID), "result-1.tmp")
		if err := os.MkdirAll(filepath.Join(left, "half"), 0o755); err != nil {
			t.Fatal(err)
		}
		second := newJournal() // in which a was killed before its record
		second.request(t, 1)
		b := second.trainer(t, "b", dir, runnerFunc(func(context.Context, Task) error {
			return errors.New("trained again")
		}))
		if job := second.await(t, b, r.ID, ended); job.Result.Outcome != record.OutcomeTrained {
			t.Errorf("got %s: %s", job.Result.Outcome, job.Result.Why)
		}
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there still (%v)", filepath.Base(left), err)
		}
	})
}

// TestHostileRecords: what is no record changes nothing and stops no trainer.
func TestHostileRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		for _, text := range []string{
			"",
			"{",
			"[]",
			"null",
			`{"schema":2,"kind":"job","id":"x"}`,
			`{"schema":1,"kind":"job","id":"m/1+head1","attempt":"x"}`,
			`{"schema":1,"kind":"head","id":""}`,
			`{"schema":1,"kind":"verdict","id":"m/1+head1"}`,
		} {
			for name, read := range map[string]func([]byte) (Entry, error){"request": ReadRequest, "heads": ReadHeads} {
				e, err := read([]byte(text))
				harmless := name == "heads" && (text == "" || text == "null" || strings.Contains(text, "verdict"))
				if (err == nil) != harmless {
					t.Errorf("%s %q: %v", name, text, err)
				}
				j.add(e) // as if the error had been ignored
			}
		}
		tr := j.trainer(t, "a", t.TempDir(), runnerFunc(good))
		j.await(t, tr, j.request(t, 1).ID, ended)
	})
}
