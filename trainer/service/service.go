package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Options are a configuration with what the process adds to it. Name is set, and Dir is the directory of the jobs.
type Options struct {
	Config
	// Pause is the time between two attempts at a job.
	Pause time.Duration
	// Publish appends a record to the heads topic, to the partition of its head's id, and returns when it is durable; a
	// nil value is a tombstone. An error that wraps ErrTooLarge is the record's; others end Run.
	Publish func(ctx context.Context, id, key string, value []byte) error
	Runner  Runner
	Log     *slog.Logger
	// Once ends Run after one job.
	Once bool
}

// limits are those of the queue.
func (o *Options) limits() Limits {
	return Limits{Attempts: o.Attempts, LostAfter: o.LostAfter, Pause: o.Pause}
}

// Runner trains.
type Runner interface {
	// Run leaves a result (WriteResult) in t.Result, a new directory. What it keeps in t.Dir is there when the same job
	// is run again after an interruption. An error that wraps ErrHopeless ends the job, others only the attempt.
	Run(ctx context.Context, t Task) error
}

// Task is one attempt of a job.
type Task struct {
	Request     record.Finetune
	Attempt     int
	Dir, Result string
	// Progress reports how far the work is, 0 to 1, and the validation NLL, 0 where there is none yet.
	Progress func(step string, done, nll float64)
}

// ErrHopeless means that another attempt would fail as this one did.
var ErrHopeless = errors.New("cannot be trained")

// ErrSetup means that the trainer's configuration is wrong for this request. The request is kept: it is tried again
// after a pause, and no attempt counts as failed.
var ErrSetup = errors.New("configuration")

// ErrTooLarge means that a record is larger than its topic takes: another attempt to publish it would fail too.
var ErrTooLarge = errors.New("record too large for the topic")

// Entry is a record of one of the two topics.
type Entry struct {
	// Record is a *record.Finetune, or what record.DecodeHeads returns.
	Record any
	// CaughtUp, without a record, says that the topics have been read to where they ended at the start.
	CaughtUp bool
}

// ReadRequest is the entry of a record of the finetune topic. The error says why it cannot be used.
func ReadRequest(value []byte) (Entry, error) {
	r, err := record.Decode[record.Finetune](value)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Record: r}, NewQueue().TakeRequest(r, time.Time{})
}

// ReadHeads is the entry of a record of the heads topic. The error says why it cannot be used.
func ReadHeads(value []byte) (Entry, error) {
	r, err := record.DecodeHeads(value)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Record: r}, NewQueue().Take(r, time.Time{})
}

// Service runs jobs. Feed it with Take, and call Run once.
type Service struct {
	cfg      Options
	queue    *Queue
	in       chan Entry
	caughtUp bool
	claim    *record.Job // that this process has made and not yet read
	run      *running
	progress chan record.Job
	finished chan finish
	done     int // jobs that this process has finished
	jobs     atomic.Pointer[[]Job]
}

// running is the attempt that this process works on.
type running struct {
	id     string
	beat   record.Job
	cancel context.CancelCauseFunc
}

// finish is how an attempt ended.
type finish struct {
	job     *Job
	attempt int
	record  record.Head
	err     error
}

// New returns a service.
func New(cfg Options) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{
		cfg:      cfg,
		queue:    NewQueue(),
		in:       make(chan Entry, 64),
		progress: make(chan record.Job, 16),
		finished: make(chan finish, 1),
	}
}

// Take hands the service a record, in the order of its log.
func (s *Service) Take(ctx context.Context, e Entry) {
	select {
	case s.in <- e:
	case <-ctx.Done():
	}
}

// Jobs returns the jobs as of now, in the order of their requests.
func (s *Service) Jobs() []Job {
	if p := s.jobs.Load(); p != nil {
		return *p
	}
	return nil
}

// Reasons why an attempt is stopped from outside.
var (
	errSuperseded = errors.New("another trainer has taken the job over")
	errCancelled  = errors.New("cancelled")
)

// Run works until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Heartbeat)
	defer tick.Stop()
	for {
		if err := s.next(ctx); err != nil {
			return s.stop(err)
		}
		if s.cfg.Once && s.done > 0 {
			return nil
		}
		var err error
		select {
		case <-ctx.Done():
			return s.stop(nil)
		case e := <-s.in:
			err = s.take(e)
		case b := <-s.progress:
			if s.run != nil && s.run.id == b.ID && s.run.beat.Attempt == b.Attempt {
				s.run.beat.Step, s.run.beat.Done, s.run.beat.NLL = b.Step, b.Done, b.NLL
			}
		case f := <-s.finished:
			err = s.finishJob(ctx, f)
		case <-tick.C:
			err = s.beat(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return s.stop(err)
		}
		s.show()
	}
}

// stopTime is how long stop waits for the attempt: longer than a program's grace, shorter than a supervisor waits
// before it kills this process.
const stopTime = 20 * time.Second

// stop ends the attempt at hand. Its checkpoint stays, and the next trainer need not wait until it counts as lost.
func (s *Service) stop(err error) error {
	if s.run == nil {
		return err
	}
	s.run.cancel(context.Canceled)
	select {
	case <-s.finished:
	case <-time.After(stopTime): // in the middle of an epoch: the process ends, and no file is half written
		s.cfg.Log.Warn("the attempt goes on until this process ends", "job", s.run.id)
	}
	const wait = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	b := s.run.beat
	b.State, b.Step = beatStopped, "the trainer was stopped"
	return errors.Join(err, s.publish(ctx, &b))
}

func (s *Service) take(e Entry) error {
	if e.CaughtUp {
		s.caughtUp = true
		return nil
	}
	now := time.Now()
	if r, ok := e.Record.(*record.Finetune); ok {
		if err := s.queue.TakeRequest(r, now); err != nil {
			s.cfg.Log.Error("request cannot be used", "err", err)
		}
		return nil
	}
	if err := s.queue.Take(e.Record, now); err != nil {
		s.cfg.Log.Error("record cannot be used", "err", err)
	}
	if r := s.run; r != nil {
		switch j := s.queue.Find(r.id); {
		case j.Cancel != nil:
			r.cancel(errCancelled)
		case j.Result != nil, j.Attempt > r.beat.Attempt || j.Attempt == r.beat.Attempt && j.Trainer != s.cfg.Name:
			r.cancel(errSuperseded)
		}
	}
	return nil
}

// next claims a job, and starts the one whose claim has been read back as the first.
func (s *Service) next(ctx context.Context) error {
	if !s.caughtUp || s.run != nil {
		return nil
	}
	if c := s.claim; c != nil {
		j := s.queue.Find(c.ID)
		if j.Open() && j.Attempt < c.Attempt {
			return nil // not read back yet
		}
		s.claim = nil
		if j.Open() && j.Attempt == c.Attempt && j.Trainer == s.cfg.Name {
			s.start(ctx, j, *c)
			return nil
		}
		return s.cfg.Publish(ctx, c.ID, jobKey(c.ID, c.Attempt, s.cfg.Name), nil) // another was first
	}
	j, last := s.queue.Next(s.cfg.Name, time.Now(), s.cfg.limits())
	if j == nil {
		return nil
	}
	if last {
		return s.giveUp(ctx, j)
	}
	c := record.Job{
		Schema:  1,
		Kind:    record.HeadJob,
		ID:      j.Request.ID,
		Attempt: j.Attempt + 1,
		Trainer: s.cfg.Name,
		State:   beatClaimed,
	}
	s.claim = &c
	s.cfg.Log.Info("claim", "job", c.ID, "attempt", c.Attempt)
	return s.publish(ctx, &c)
}

// giveUp reports a job as failed whose attempts are used up.
func (s *Service) giveUp(ctx context.Context, j *Job) error {
	why := fmt.Sprintf("given up after %d attempts", j.Attempt)
	if j.Attempt > s.cfg.Attempts {
		why += fmt.Sprintf(", %d of them without progress", s.cfg.Attempts)
	}
	if j.LastError != "" {
		why += ": " + j.LastError
	} else if j.Trainer != "" {
		why += ": trainer " + j.Trainer + " was lost"
	}
	h := headRecord(j.Request, j.Attempt, s.cfg.Name)
	h.Outcome, h.Why = record.OutcomeFailed, why
	return s.result(ctx, j, h)
}

// result publishes a result. It is noted at once, so that the job is not taken up again before it is read back.
func (s *Service) result(ctx context.Context, j *Job, h record.Head) error {
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	err = s.cfg.Publish(ctx, h.ID, record.HeadKey(h.ID, record.HeadTrained)+fmt.Sprintf("/%d", h.Attempt), value)
	if errors.Is(err, ErrTooLarge) && h.Outcome != record.OutcomeFailed {
		f := headRecord(j.Request, h.Attempt, s.cfg.Name)
		f.Outcome = record.OutcomeFailed
		f.Why = fmt.Sprintf("the result cannot be published: %d bytes, of which %d are weights and %d evidence: %v",
			len(value), len(h.Weights), len(h.Evidence), err)
		return s.result(ctx, j, f)
	}
	if err != nil {
		return err
	}
	if j.Result == nil {
		j.Result, j.Trainer = &h, ""
	}
	s.done++
	s.cfg.Log.Info("result", "job", h.ID, "attempt", h.Attempt, "outcome", h.Outcome, "why", h.Why)
	s.prune()
	return nil
}

// publish publishes the next record of an attempt.
func (s *Service) publish(ctx context.Context, b *record.Job) error {
	b.Beat++
	value, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return s.cfg.Publish(ctx, b.ID, jobKey(b.ID, b.Attempt, b.Trainer), value)
}

func (s *Service) beat(ctx context.Context) error {
	if s.run == nil {
		return nil
	}
	return s.publish(ctx, &s.run.beat)
}

// start runs an attempt beside the loop.
func (s *Service) start(ctx context.Context, j *Job, c record.Job) {
	c.State = beatRunning
	ctx, cancel := context.WithCancelCause(ctx)
	s.run = &running{id: c.ID, beat: c, cancel: cancel}
	go func() {
		f := finish{job: j, attempt: c.Attempt}
		f.record, f.err = s.work(ctx, j.Request, c.Attempt)
		if cause := context.Cause(ctx); f.err != nil && cause != nil {
			f.err = cause
		}
		cancel(nil)
		s.finished <- f
	}()
}

// finishJob publishes what came of an attempt.
func (s *Service) finishJob(ctx context.Context, f finish) error {
	beat := s.run.beat
	s.run = nil
	switch {
	case f.err == nil && f.job.Open():
		return s.result(ctx, f.job, f.record)
	case f.err == nil, errors.Is(f.err, errSuperseded), errors.Is(f.err, errCancelled):
		s.cfg.Log.Warn("attempt ended", "job", beat.ID, "attempt", f.attempt, "err", f.err)
		if f.job.Cancel != nil {
			s.done++
		}
		return nil
	case errors.Is(f.err, ErrHopeless):
		h := headRecord(f.job.Request, f.attempt, s.cfg.Name)
		h.Outcome, h.Why = record.OutcomeFailed, f.err.Error()
		return s.result(ctx, f.job, h)
	}
	s.cfg.Log.Error("attempt failed", "job", beat.ID, "attempt", f.attempt, "err", f.err)
	beat.State, beat.Step = beatFailed, f.err.Error()
	if errors.Is(f.err, ErrSetup) || diskFull(f.err) { // no fault of the request
		beat.State = beatHeld
	}
	f.job.beat(beat, time.Now()) // known here before it is read back, which changes nothing
	return s.publish(ctx, &beat)
}

// diskFull says whether this process got no room on a disk, or no more of its user's share of one.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// show makes the jobs visible to other goroutines.
func (s *Service) show() {
	var out []Job
	for _, j := range s.queue.Jobs() {
		c := *j
		if r := s.run; r != nil && r.id == c.Request.ID {
			c.Beat = r.beat
		}
		out = append(out, c)
	}
	s.jobs.Store(&out)
}

// prune removes the directories of the oldest finished jobs. Where heads are not in their records, those stay.
func (s *Service) prune() {
	var done []*Job
	for _, j := range s.queue.Jobs() {
		r := j.Result
		needed := r != nil && len(r.Artefacts) > 0 && len(r.Weights) == 0
		if !j.Open() && !needed && exists(filepath.Join(s.cfg.Dir, dirName(j.Request.ID))) {
			done = append(done, j)
		}
	}
	for len(done) > s.cfg.Keep {
		if err := os.RemoveAll(filepath.Join(s.cfg.Dir, dirName(done[0].Request.ID))); err != nil {
			s.cfg.Log.Warn("old job", "err", err)
		}
		done = done[1:]
	}
}
