package attempts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/pipeline"
)

// Pauses between two attempts.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// logEvery is how often a fault that lasts is logged.
const logEvery = time.Minute

// maxSkips is how many of the latest skipped records the status lists.
const maxSkips = 20

// Config is how tasks are run.
type Config struct {
	// SkipAfter is how many times in a row a record may end its task before it is skipped; 0 = any number.
	SkipAfter int
	// Dir is for the files of the guards; "" = deaths of the process are not counted.
	Dir string
	Log *slog.Logger
}

// Tasks are the tasks of one process.
type Tasks struct {
	cfg Config

	mu    sync.Mutex
	tasks map[ID]*state
	skips []Skip // latest last
}

// ID names a task: shard, model or a kind of repartition, and its partition.
type ID struct {
	Task      string `json:"task"`
	Partition int    `json:"partition"`
}

func (id ID) String() string { return fmt.Sprintf("%s %d", id.Task, id.Partition) }

// Place is a record's.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (p Place) String() string {
	return fmt.Sprintf("%s partition %d offset %d", p.Topic, p.Partition, p.Offset)
}

// Failure is a task that fails: it has not saved a checkpoint, nor had nothing to save, since it ended last.
type Failure struct {
	ID
	Since time.Time `json:"since"`
	Times int       `json:"times"` // in a row
	At    *Place    `json:"at,omitempty"`
	Cause string    `json:"cause"`
	Next  time.Time `json:"next_try"`
}

// String says it in words.
func (f *Failure) String() string {
	at := ""
	if f.At != nil {
		at = " at " + f.At.String()
	}
	return fmt.Sprintf("%s has failed %d times since %s%s: %s; the next try is at %s", f.ID, f.Times,
		f.Since.Format(time.RFC3339), at, f.Cause, f.Next.Format(time.RFC3339))
}

// Skip is a record that was skipped.
type Skip struct {
	Task  ID        `json:"task"`
	At    Place     `json:"at"`
	Cause string    `json:"cause"`
	When  time.Time `json:"when"`
}

// state describes one task.
type state struct {
	failure  *Failure // nil: it works
	total    int64    // failures of this process
	progress bool     // since the last failure
	pause    time.Duration
	logged   time.Time
	fault    string // the one that was logged, see faultOf
	unlogged int
	issue    Issue // as of the last guard that had no file
	ended    time.Time
	unsaved  bool // when it ended
}

// New returns the tasks of a process, none yet.
func New(cfg Config) *Tasks { return &Tasks{cfg: cfg, tasks: map[ID]*state{}} }

// lasting is an error that trying again soon does not mend.
type lasting struct{ error }

func (e lasting) Unwrap() error { return e.error }

// Lasting marks an error that only a person can mend: the task is tried again at the longest pause.
func Lasting(err error) error { return lasting{err} }

// Run runs work until ctx is done, again after every error. It returns what work returned last.
func (t *Tasks) Run(ctx context.Context, id ID, work func(ctx context.Context, g *Guard) error) error {
	defer t.forget(id)
	for {
		g := t.guard(id)
		err := func() (err error) {
			defer pipeline.Caught(&err)
			return work(ctx, g)
		}()
		if err == nil || ctx.Err() != nil {
			g.close()
			t.ended(id, err)
			return err
		}
		g.failed(err)
		select {
		case <-ctx.Done():
			t.ended(id, err)
			return nil
		case <-time.After(t.failed(id, err)):
		}
	}
}

// forget ends a failure whose task has gone to another process, or ended.
func (t *Tasks) forget(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.tasks[id]; s != nil {
		s.failure = nil
	}
}

// ended notes whether a task that ends has a checkpoint with all that it took. One that could not begin, or has to wait
// for a person, took nothing.
func (t *Tasks) ended(id ID, err error) {
	took := err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &lasting{})
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(id)
	s.ended, s.unsaved = time.Now(), took || errors.Is(err, pipeline.ErrUnsaved)
}

// Ended returns how many tasks have ended since a time, and those of them that have no last checkpoint.
func (t *Tasks) Ended(since time.Time) (n int, unsaved []ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, s := range t.tasks {
		if s.ended.IsZero() || s.ended.Before(since) {
			continue
		}
		if n++; s.unsaved {
			unsaved = append(unsaved, id)
		}
	}
	slices.SortFunc(unsaved, func(a, b ID) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Partition, b.Partition))
	})
	return n, unsaved
}

// of is the state of a task; t.mu is held.
func (t *Tasks) of(id ID) *state {
	s := t.tasks[id]
	if s == nil {
		s = &state{}
		t.tasks[id] = s
	}
	return s
}

// failed notes a failure and returns the pause before the next attempt.
func (t *Tasks) failed(id ID, err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, now := t.of(id), time.Now().UTC().Truncate(time.Millisecond)
	s.total++
	switch {
	case errors.As(err, &lasting{}):
		s.pause = longestPause
	case s.progress || s.pause == 0:
		s.pause = firstPause
	default:
		s.pause = min(2*s.pause, longestPause)
	}
	s.progress = false
	f := &Failure{ID: id, Since: now, Times: 1, Cause: err.Error(), Next: now.Add(s.pause)}
	if s.failure != nil {
		f.Since, f.Times = s.failure.Since, s.failure.Times+1
	}
	var te *pipeline.TakeError
	if errors.As(err, &te) {
		f.At = &Place{te.Topic, te.Partition, te.Offset}
	}
	s.failure = f
	t.log(s, f, err)
	return s.pause
}

// faultOf names the fault of an error: its text without the numbers in it.
func faultOf(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// log writes a failure to the log: the first of a fault, and then one a minute with the count of those in between.
func (t *Tasks) log(s *state, f *Failure, err error) {
	now, fault := time.Now(), faultOf(err)
	if fault == s.fault && now.Sub(s.logged) < logEvery {
		s.unlogged++
		return
	}
	s.logged, s.fault = now, fault
	log := t.cfg.Log.With("task", f.Task, "partition", f.ID.Partition, "failures", f.Times, "next_try", f.Next)
	if s.unlogged > 0 {
		log = log.With("not_logged", s.unlogged)
	}
	if f.At != nil {
		log = log.With("record", f.At.String())
	}
	var p *pipeline.PanicError
	if errors.As(err, &p) {
		log = log.With("stack", string(p.Stack))
	}
	log.Error("task failed, it is tried again", "err", err)
	s.unlogged = 0
}

// saved notes that a task works.
func (t *Tasks) saved(id ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(id)
	if s.failure != nil {
		t.cfg.Log.Info("task works again", "task", id.Task, "partition", id.Partition, "failures", s.failure.Times,
			"since", s.failure.Since)
	}
	s.failure, s.progress = nil, true
}

// skipped notes that a record is skipped.
func (t *Tasks) skipped(id ID, at Place, cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skips = append(t.skips, Skip{Task: id, At: at, Cause: cause, When: time.Now().UTC().Truncate(time.Millisecond)})
	t.skips = t.skips[max(0, len(t.skips)-maxSkips):]
	t.cfg.Log.Error("record is skipped: it has ended its task again and again; a dead letter names it", "task",
		id.Task, "partition", id.Partition, "record", at.String(), "cause", cause)
}

// Failing are the tasks that fail now.
func (t *Tasks) Failing() []Failure {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Failure
	for _, s := range t.tasks {
		if s.failure != nil {
			out = append(out, *s.failure)
		}
	}
	slices.SortFunc(out, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.ID.Partition, b.ID.Partition))
	})
	return out
}

// Skipped are the latest records that this process has skipped, the newest last.
func (t *Tasks) Skipped() []Skip {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.skips)
}

// Totals are the failures of every task since the process started.
func (t *Tasks) Totals() map[ID]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[ID]int64{}
	for id, s := range t.tasks {
		out[id] = s.total
	}
	return out
}
