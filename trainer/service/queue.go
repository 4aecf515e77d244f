package service

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Job is a request and what has become of it.
type Job struct {
	Request record.Finetune
	// Attempt is the newest that was claimed, 0 before the first; Trainer is whose claim it is, "" where it has ended.
	Attempt int
	Trainer string
	// Failures are attempts that failed, or whose trainer was lost, and that came no further than those before them.
	Failures int
	// Furthest is the share of the work that attempts which have ended came to.
	Furthest float64
	// Seen is when this process read Trainer's newest record, or the request, or the end of an attempt.
	Seen time.Time
	// Beat is Trainer's newest record; Curve is the validation NLL that its records have reported.
	Beat  record.Job
	Curve []Point
	// Result is the first one; Cancel the order that ended it. One of them at most is there: the first in the log.
	Result *record.Head
	Cancel *record.Order
	// LastError is why the last attempt that failed did.
	LastError string
	// waits is when the request was read, or the end of the last attempt that came further than those before it, or
	// that was stopped. stuck is whether one has failed, been held or been lost since, and come no further.
	waits time.Time
	stuck bool
}

// Point is one of a curve: the validation NLL when a share of the work was done.
type Point struct {
	Step string  `json:"step"`
	Done float64 `json:"done"`
	NLL  float64 `json:"nll"`
}

// maxPoints is how many points of a running job are held; every other goes when there are more.
const maxPoints = 200

// States of a job.
const (
	StateWaiting   = "waiting"
	StateRunning   = "running"
	StateCancelled = record.OutcomeCancelled
)

// State is waiting, running, cancelled, or the outcome of the result.
func (j *Job) State() string {
	switch {
	case j.Result != nil:
		return j.Result.Outcome
	case j.Cancel != nil:
		return StateCancelled
	case j.Trainer != "":
		return StateRunning
	}
	return StateWaiting
}

// Open is whether the job has neither a result nor a cancellation.
func (j *Job) Open() bool { return j.Result == nil && j.Cancel == nil }

// States of the records of an attempt (record.Job).
const (
	beatClaimed = "claimed"
	beatRunning = "running"
	beatFailed  = "failed"  // the attempt; the job may be tried again
	beatStopped = "stopped" // by the trainer's shutdown; not a failure
	beatHeld    = "held"    // by a mistake of its trainer's configuration, or its full disk; not a failure
)

// Queue is the state of all jobs after the records of the finetune and heads topics that have been read.
type Queue struct {
	jobs  map[string]*Job
	order []string
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{jobs: map[string]*Job{}} }

// Jobs returns all jobs in the order of their requests.
func (q *Queue) Jobs() []*Job {
	var out []*Job
	for _, id := range q.order {
		if j := q.jobs[id]; j.Request.ID != "" {
			out = append(out, j)
		}
	}
	return out
}

// All returns also those whose request has not been read, or was deleted since.
func (q *Queue) All() []*Job {
	var out []*Job
	for _, id := range q.order {
		out = append(out, q.jobs[id])
	}
	return out
}

// Find returns a job by id, nil where there is none.
func (q *Queue) Find(id string) *Job { return q.jobs[id] }

func (q *Queue) job(id string) *Job {
	j := q.jobs[id]
	if j == nil {
		j = &Job{}
		q.jobs[id] = j
		q.order = append(q.order, id)
	}
	return j
}

// TakeRequest takes a record of the finetune topic, read at a time by this process's clock.
func (q *Queue) TakeRequest(r *record.Finetune, now time.Time) error {
	if r.Schema != 1 || r.ID == "" || r.Model == "" || r.Number < 1 || r.ID != r.Model+"/"+r.ShadowVersion {
		return fmt.Errorf("request %q: schema %d, model %q, shadow version %q, number %d: "+
			"allowed are schema 1, an id that is model/shadow_version, and numbers from 1",
			r.ID, r.Schema, r.Model, r.ShadowVersion, r.Number)
	}
	j := q.job(r.ID)
	if j.Request.ID == "" {
		j.Request = *r
		if j.Seen.IsZero() {
			j.Seen = now
		}
		if j.waits.IsZero() {
			j.waits = now
		}
	}
	return nil
}

// Take takes a record of the heads topic (record.DecodeHeads); nil is none. Records that concern no job are ignored.
func (q *Queue) Take(rec any, now time.Time) error {
	switch r := rec.(type) {
	case *record.Job:
		if err := usable(r.Kind, r.Schema, r.ID); err != nil {
			return err
		}
		q.job(r.ID).beat(*r, now)
	case *record.Head:
		if err := usable(r.Kind, r.Schema, r.ID); err != nil {
			return err
		}
		if j := q.job(r.ID); j.Open() {
			h := *r
			j.Result, j.Trainer = &h, ""
		}
	case *record.Verdict:
		return usable(r.Kind, r.Schema, r.ID)
	case *record.Order:
		if err := usable(r.Kind, r.Schema, r.ID); err != nil {
			return err
		}
		if j := q.job(r.ID); r.Kind == record.HeadCancel && j.Open() {
			o := *r
			j.Cancel, j.Trainer = &o, ""
		}
	}
	return nil
}

func usable(kind string, schema int, id string) error {
	if schema != 1 || id == "" {
		return fmt.Errorf("heads record %q: schema %d and id %q, allowed are 1 and an id", kind, schema, id)
	}
	return nil
}

// beat takes a record of an attempt. The first of an attempt that is newer than the last claims it.
func (j *Job) beat(b record.Job, now time.Time) {
	if b.Attempt > j.Attempt {
		if j.Trainer != "" {
			j.over(now) // lost: it ended without saying so
		}
		j.Attempt, j.Trainer, j.Curve = b.Attempt, b.Trainer, nil
	} else if b.Attempt < j.Attempt || b.Trainer != j.Trainer {
		return
	}
	j.Beat, j.Seen = b, now
	j.plot(b)
	switch b.State {
	case beatFailed:
		j.over(now)
		j.Trainer, j.LastError = "", b.Step
	case beatHeld:
		j.ended(true, now)
		j.Trainer, j.LastError = "", b.Step
	case beatStopped:
		j.ended(j.stuck, now)
		j.Trainer = ""
	}
}

// leastProgress is what an attempt must come further than all before it to have made progress: so much bounds how many
// attempts can.
const leastProgress = 0.01

// progressed says whether the attempt at hand came further than those before it: another one will come further still.
func (j *Job) progressed() bool { return j.Beat.Done >= j.Furthest+leastProgress }

// over notes that the attempt at hand has failed or was lost.
func (j *Job) over(now time.Time) {
	if !j.progressed() {
		j.Failures++
	}
	j.ended(true, now)
}

// ended notes how far the attempt at hand came, which has no result; stuck is what the job is if it came no further.
func (j *Job) ended(stuck bool, now time.Time) {
	if j.stuck = stuck && !j.progressed(); !j.stuck {
		j.waits = now
	}
	j.Furthest = max(j.Furthest, j.Beat.Done)
}

// Waiting is for how long the job has waited for a trainer, or for an attempt that comes further than those that
// failed: a claim does not end the wait of a job whose attempts all end where they begin, as on a full disk.
func (j *Job) Waiting(now time.Time) time.Duration {
	if s := j.State(); s == StateWaiting || s == StateRunning && j.stuck && !j.progressed() {
		return now.Sub(j.waits)
	}
	return 0
}

// plot adds a point where there is a new one. Those that were handed out stay as they are.
func (j *Job) plot(b record.Job) {
	n := len(j.Curve)
	if b.NLL == 0 || n > 0 && j.Curve[n-1].Done == b.Done && j.Curve[n-1].Step == b.Step {
		return
	}
	if n >= maxPoints {
		var half []Point
		for i := 1; i < n; i += 2 {
			half = append(half, j.Curve[i])
		}
		j.Curve = half
	}
	j.Curve = append(j.Curve, Point{Step: b.Step, Done: b.Done, NLL: b.NLL})
}

// Limits bound how often and how soon jobs are tried.
type Limits struct {
	Attempts  int
	LostAfter time.Duration
	// Pause, times the failures so far, at least one, is the wait after a failed attempt.
	Pause time.Duration
}

// Next returns the first job that trainer me may claim now, or nil; last is set where its attempts are used up and it
// is to be reported as failed. A job that me has claimed in the log, but does not run, was cut off by a restart of me.
func (q *Queue) Next(me string, now time.Time, l Limits) (j *Job, last bool) {
	for _, id := range q.order {
		j := q.jobs[id]
		if j.Request.ID == "" || !j.Open() {
			continue
		}
		failures, quiet, pause := j.Failures, now.Sub(j.Seen), time.Duration(0)
		if j.LastError != "" {
			pause = time.Duration(max(failures, 1)) * l.Pause
		}
		switch {
		case j.Trainer == "" && quiet >= pause:
		case j.Trainer == me, j.Trainer != "" && quiet >= l.LostAfter:
			if !j.progressed() {
				failures++
			}
		default:
			continue
		}
		return j, failures >= l.Attempts
	}
	return nil, false
}

// jobKey is the key of an attempt's records.
func jobKey(id string, attempt int, trainer string) string {
	return record.HeadKey(id, record.HeadJob) + "/" + strconv.Itoa(attempt) + "/" + trainer
}

// JobDir is the name of the directory of a job.
func JobDir(id string) string { return dirName(id) }

// dirName is a directory name for an id: letters, digits and ._+- stay, all else is %XX of its bytes.
func dirName(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		hidden := c == '.' && b.Len() == 0
		if letter || strings.IndexByte("._+-", c) >= 0 && !hidden {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
