package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/buildinfo"
	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/deployment"
	"github.com/plumbline/plumbline/internal/engine/scale"
	"github.com/plumbline/plumbline/internal/engine/trouble"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/attempts"
	"github.com/plumbline/plumbline/pipeline/inputs"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
	"github.com/plumbline/plumbline/sinks/registry"
)

// process is what this process does at present: which tasks run and what they read, what their groups say of it,
// whether it is paused, what fails and what is lost.
type process struct {
	config *config.Config
	log    *slog.Logger
	past   *past
	running
	silence
	Pauser
	attempts *attempts.Tasks
	troubles *trouble.Watch

	// What the start of a run sets, and then begun. book is of how many shards the deployment is one; nil = no Kafka.
	// ends asks the brokers whether logs end at marks; nil = no Kafka.
	begun       atomic.Bool
	book        *scale.Book
	ends        func(context.Context, []kafkaio.Mark) (bool, error)
	smallTopics []kafkaclient.SmallTopic
}

func newProcess(cfg *config.Config, past *past, log *slog.Logger) *process {
	p := &process{config: cfg, log: log, past: past,
		running: running{tasks: map[string]reporter{}, sources: map[string]*kafkaio.Source{}},
		attempts: attempts.New(attempts.Config{SkipAfter: cfg.Checkpoints.SkipAfter,
			Dir: filepath.Join(workDir(cfg), "attempts", url.PathEscape(cfg.Group)), Log: log})}
	p.troubles = &trouble.Watch{Log: log, Wait: cfg.Join.Wait, Blind: p.refused}
	p.troubles.Keyed.Store(!cfg.Splits())
	return p
}

// settled is how long nothing may have happened before a process that has read everything reports that it is drained.
const settled = 1500 * time.Millisecond

// ProcessStatus is the object "process" of /api/v1/status.
type ProcessStatus struct {
	Version   string         `json:"version"`
	Host      string         `json:"host"`
	Drained   bool           `json:"drained"`
	StateHash string         `json:"state_hash,omitempty"`
	Watermark string         `json:"watermark,omitempty"`
	Counts    map[string]any `json:"counts"`
	// Unaccounted is the number of the shards' rows that are in no count, or in two. Anything but 0 is a defect.
	Unaccounted int64                  `json:"rows_unaccounted"`
	Models      map[string]string      `json:"state_hash_by_model"`
	Tasks       []*pipeline.TaskStatus `json:"tasks"`
	Paused      *PauseStatus           `json:"paused,omitempty"`
	// Kafka is there while no broker answers.
	Kafka *silenceStatus `json:"kafka,omitempty"`
	// Scale is there while the number of shards changes.
	Scale *deployment.GrowthStatus `json:"scale,omitempty"`
	// Failing lists tasks that fail and are retried.
	Failing []attempts.Failure `json:"failing,omitempty"`
	// Outside are the stages that do not run, for this process is not in their group.
	Outside []outsideStatus `json:"not_in_group,omitempty"`
	// Troubles are what is lost of the inputs, and what mends it.
	Troubles []trouble.Issue `json:"troubles,omitempty"`
	// Skipped lists the latest records that were skipped because they ended their task again and again.
	Skipped []attempts.Skip `json:"skipped,omitempty"`
	// SmallTopics lists topics that, at the start, took only shorter messages than configured.
	SmallTopics []kafkaclient.SmallTopic `json:"small_topics,omitempty"`
	// Waiting lists partitions without messages that hold everything back.
	Waiting []waitingStatus `json:"waiting_for,omitempty"`
	// Lag is as of now, the rest as of the last checkpoints.
	Lag map[string]map[string]lagStatus `json:"lag,omitempty"` // by task and input
	// History is how the database of the history does; absent without one.
	History *registry.Status `json:"history,omitempty"`
}

// silenceStatus says since when no heartbeat of the consumer groups has been answered, and with what error.
type silenceStatus struct {
	Since time.Time `json:"silent_since"` // wall clock
	Error string    `json:"error"`

	refused bool // somebody answers, and does not let this process into the group any more
}

// silence is kept by group: an answer to one says nothing about the other.
type silence struct {
	silentMu sync.Mutex
	silent   map[string]silenceStatus
}

// heardNothing returns the Silent callback of a group (kafkaio.Group).
func (s *silence) heardNothing(group string) func(time.Time, error) {
	return func(since time.Time, err error) {
		s.silentMu.Lock()
		defer s.silentMu.Unlock()
		if since.IsZero() {
			delete(s.silent, group)
			return
		}
		if s.silent == nil {
			s.silent = map[string]silenceStatus{}
		}
		s.silent[group] = silenceStatus{Since: since.UTC().Truncate(time.Millisecond), Error: fmt.Sprint(err),
			refused: errors.Is(err, kafka.GroupAuthorizationFailed)}
	}
}

// shutOut returns an error if this process may not be in a group any more that it was in. Its tasks go on with what
// they have, and no other process takes over what they lose.
func (s *silence) shutOut() error {
	s.silentMu.Lock()
	defer s.silentMu.Unlock()
	for _, group := range slices.Sorted(maps.Keys(s.silent)) {
		if st := s.silent[group]; st.refused {
			return fmt.Errorf("stage %s: not in its group any more since %s: %s; plumbline doctor names the missing "+
				"right", group, st.Since.Format(time.RFC3339), st.Error)
		}
	}
	return nil
}

// kafkaSilence returns the longest silence, nil if all groups are answered.
func (s *silence) kafkaSilence() *silenceStatus {
	s.silentMu.Lock()
	defer s.silentMu.Unlock()
	var out *silenceStatus
	for _, st := range s.silent {
		if out == nil || st.Since.Before(out.Since) {
			out = &st
		}
	}
	return out
}

// running has the tasks of this process and their sources, by task name.
type running struct {
	mu      sync.Mutex
	tasks   map[string]reporter
	sources map[string]*kafkaio.Source // what the tasks read, by the same names
	due     assignments
}

type reporter interface {
	Status() *pipeline.TaskStatus
}

func (rt *running) add(name string, t reporter) {
	rt.mu.Lock()
	rt.tasks[name] = t
	rt.mu.Unlock()
}

// reads notes the source that a task reads from now on.
func (rt *running) reads(name string, s *kafkaio.Source) {
	rt.mu.Lock()
	rt.sources[name] = s
	rt.mu.Unlock()
}

func (rt *running) remove(name string) {
	rt.mu.Lock()
	delete(rt.tasks, name)
	delete(rt.sources, name)
	rt.mu.Unlock()
}

// scaledSince returns when the open scale order was given.
func (p *process) scaledSince() (since time.Time, open bool) {
	if p.book == nil {
		return since, false
	}
	plan, _ := p.book.Now()
	return plan.Since, plan.Open()
}

// lagStatus is how far reading of an input is behind the log.
type lagStatus struct {
	Offsets int64   `json:"offsets"`
	Seconds float64 `json:"seconds"` // now less the timestamp of the oldest record
}

// lag returns the lag of all tasks of this process.
func (rt *running) lag(now time.Time) map[string]map[string]lagStatus {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	out := map[string]map[string]lagStatus{}
	for name, src := range rt.sources {
		by := map[string]lagStatus{}
		for in, l := range src.Lags() {
			st := lagStatus{Offsets: l.Offsets}
			if l.Oldest > 0 {
				st.Seconds = max(0, now.Sub(time.Unix(0, l.Oldest)).Seconds())
			}
			by[in.String()] = st
		}
		out[name] = by
	}
	return out
}

// unread returns what brokers refuse the tasks of this process to read.
func (rt *running) unread() (out []kafkaio.Unusable) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(rt.sources)) {
		out = append(out, rt.sources[name].Unread()...)
	}
	return out
}

// refused reports whether brokers refuse to read an input of a task of this process, or topics cannot be used.
func (p *process) refused() bool {
	topics := slices.ContainsFunc(p.attempts.Failing(), func(f attempts.Failure) bool { return f.Task == taskTopics })
	p.running.mu.Lock()
	defer p.running.mu.Unlock()
	for _, src := range p.sources {
		topics = topics || src.Refused()
	}
	return topics
}

// Statuses returns what the tasks of this process say; complete: all of them say something.
func (rt *running) Statuses() (all []*pipeline.TaskStatus, complete bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	complete = len(rt.tasks) > 0
	for _, name := range slices.Sorted(maps.Keys(rt.tasks)) {
		st := rt.tasks[name].Status()
		if st == nil {
			complete = false
			continue
		}
		all = append(all, st)
	}
	return all, complete
}

// assigned is the number of tasks, with those that have no status yet.
func (rt *running) assigned() int {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return len(rt.tasks)
}

func (rt *running) taskStatuses() []*pipeline.TaskStatus {
	all, _ := rt.Statuses()
	return all
}

// assignments are, by stage, what its group says of this process.
type assignments struct {
	mu sync.Mutex
	by map[string]*membership
}

// membership is that of this process in the group of a stage.
type membership struct {
	group  string   // "" until it is about to be joined
	tasks  []string // that it has given; nil while it has not said
	since  time.Time
	joined bool  // before, if it does not say now
	err    error // of the latest try to join
}

// outOfGroup is how long a process may be out of a group that it was in: while a group assigns anew, tasks write their
// last checkpoints first.
const outOfGroup = time.Minute

// await says that this process takes part in stages, of which no group has given it tasks yet.
func (a *assignments) await(stages ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[string]*membership{}
	}
	for _, stage := range stages {
		a.by[stage] = &membership{since: time.Now()}
	}
}

// leave notes that this process no longer takes part in a stage.
func (a *assignments) leave(stage string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, stage)
}

// of is what is known of a stage. a.mu is held.
func (a *assignments) of(stage string) *membership {
	if a.by == nil {
		a.by = map[string]*membership{}
	}
	m := a.by[stage]
	if m == nil {
		m = &membership{since: time.Now()}
		a.by[stage] = m
	}
	return m
}

// follow notes what a group says of a stage of so many tasks; partitions beyond have none.
func (a *assignments) follow(g *kafkaio.Group, stage string, of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.of(stage)
	m.group, m.err = g.ID, nil
	g.Has = a.has(stage, of)
	g.Outside = func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.of(stage).err = err
	}
}

// has is kafkaio.Group's Has for a stage.
func (a *assignments) has(stage string, of int) func([]int, bool) {
	return func(partitions []int, member bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		m := a.of(stage)
		if !member {
			if m.tasks != nil {
				m.tasks, m.since = nil, time.Now()
			}
			return
		}
		m.tasks, m.joined, m.err = []string{}, true, nil
		for _, p := range partitions {
			if p < of {
				m.tasks = append(m.tasks, taskName(stage, p))
			}
		}
	}
}

// outsideStatus is a stage whose group this process is not in.
type outsideStatus struct {
	Stage string    `json:"stage"`
	Group string    `json:"group,omitempty"`
	Since time.Time `json:"since"` // wall clock
	Error string    `json:"error,omitempty"`
}

func (s outsideStatus) String() string {
	text := fmt.Sprintf("stage %s: not in its group %s since %s", s.Stage, s.Group, s.Since.Format(time.RFC3339))
	if s.Error != "" {
		text += ": " + s.Error
	}
	return text
}

// outside lists the stages whose group this process has never been in, or has been out of for long.
func (a *assignments) outside(now time.Time) (out []outsideStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, stage := range slices.Sorted(maps.Keys(a.by)) {
		m := a.by[stage]
		if m.tasks != nil || m.joined && now.Sub(m.since) < outOfGroup {
			continue
		}
		s := outsideStatus{Stage: stage, Group: m.group, Since: m.since.UTC().Truncate(time.Millisecond)}
		if m.err != nil {
			s.Error = m.err.Error()
		}
		out = append(out, s)
	}
	return out
}

// all reports whether every stage has been given its tasks, and they are there: a process that waits for the partitions
// of one that was killed may have the other stages' only.
func (a *assignments) all(there func(task string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.by {
		if m.tasks == nil {
			return false
		}
		for _, name := range m.tasks {
			if !there(name) {
				return false
			}
		}
	}
	return true
}

// reached returns the places up to which the tasks have been handed their inputs.
func (rt *running) reached() (marks []kafkaio.Mark) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, src := range rt.sources {
		marks = append(marks, src.Reached()...)
	}
	return marks
}

// brokerWait bounds how long a status waits for the brokers.
const brokerWait = 500 * time.Millisecond

// atEnd asks whether the logs end at marks.
func (p *process) atEnd(marks []kafkaio.Mark) bool {
	if len(marks) == 0 || p.ends == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), brokerWait)
	defer cancel()
	ok, err := p.ends(ctx, marks)
	if err != nil {
		p.log.Debug("where the logs end", "err", err)
	}
	return ok && err == nil
}

// shown reports whether all assigned tasks run and their statuses cover everything that they have taken. Statuses are
// from the last checkpoints, and a slow checkpoint must not look like silence.
func (rt *running) shown() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if !rt.due.all(func(task string) bool { return rt.tasks[task] != nil && rt.sources[task] != nil }) {
		return false
	}
	for name, src := range rt.sources {
		t := rt.tasks[name]
		if t == nil || t.Status() == nil {
			return false
		}
		if src.Unshown() {
			return false
		}
		next := t.Status().Next
		for in, o := range src.Handed() {
			if next[in.String()] < o {
				return false
			}
		}
	}
	return true
}

// heard reports whether the model tasks have taken every pane message that the shards of this process have written.
func heard(tasks []*pipeline.TaskStatus) bool {
	for _, m := range tasks {
		for _, s := range tasks {
			if m.Task != "model" || m.Partition >= len(s.PanesWritten) {
				continue
			}
			wrote := s.PanesWritten[m.Partition]
			if wrote > 0 && !tookAll(m, s, wrote) {
				return false
			}
		}
	}
	return true
}

// tookAll reports whether a model task has taken a shard's messages up to number wrote, in the shard's present epoch.
func tookAll(m, s *pipeline.TaskStatus, wrote uint64) bool {
	if s.Partition >= len(m.PanesTaken) || m.PanesTaken[s.Partition] < wrote {
		return false
	}
	return s.Partition >= len(m.Epochs) || m.Epochs[s.Partition] == s.Epoch
}

// Status describes the process. The process is drained when all its tasks run and have read to the present end of
// their logs, everything is written, the model tasks have taken what the shards wrote, and nothing has happened for a
// moment: then what other processes wrote has arrived, too.
func (p *process) Status() *ProcessStatus {
	// Each before the next, and the ends of the logs last: what one task wrote is then in what the next was asked for.
	marks := p.reached()
	shown := p.shown() // before the statuses: later ones are as good, earlier ones are not
	tasks, complete := p.Statuses()
	st := &ProcessStatus{Version: buildinfo.Read().Version, Host: Hostname(), Counts: countTree(tasks), Tasks: tasks,
		Models: map[string]string{},
		Paused: p.paused(), Kafka: p.kafkaSilence(), Lag: p.lag(time.Now())}
	st.Waiting = p.waitingFor(tasks, time.Now())
	if past := p.past.now(); past != nil {
		h := past.Fill.Progress()
		st.History = &h
	}
	st.Troubles = p.troubles.Now()
	st.Outside = p.due.outside(time.Now())
	st.Failing, st.Skipped = p.attempts.Failing(), p.attempts.Skipped()
	if p.begun.Load() {
		st.SmallTopics, st.Scale = p.smallTopics, deployment.Growth(context.Background(), p.book)
	}
	st.Drained = complete && shown && heard(tasks) && len(st.Failing) == 0 && st.Scale == nil
	wm, shards := pipeline.EndTime, 0
	for _, t := range tasks {
		st.Drained = st.Drained && t.CaughtUp && time.Since(t.Active) > settled &&
			(t.Task != "model" || t.StateHash != nil)
		maps.Copy(st.Models, t.StateHash)
		if t.Task == "shard" {
			wm = min(wm, t.WM)
			shards++
			rows, _ := pipeline.Unaccounted(t.Counts)
			st.Unaccounted += rows
		}
	}
	st.Drained = st.Drained && p.atEnd(marks)
	if shards > 0 && wm != pipeline.NoTime && wm != pipeline.EndTime {
		st.Watermark = pipeline.Format(wm)
	}
	st.StateHash = CombineHashes(st.Models)
	return st
}

// CombineHashes is one hash over all models, whichever tasks they are in.
func CombineHashes(by map[string]string) string {
	if len(by) == 0 {
		return ""
	}
	h := sha256.New()
	for _, m := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(h, "%s=%s\n", m, by[m])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// countTree sums the counts over tasks; "name:reason" becomes an object by reason.
func countTree(tasks []*pipeline.TaskStatus) map[string]any {
	out := map[string]any{pipeline.CountRejected: map[string]int64{}, pipeline.CountDeadLetters: map[string]int64{}}
	for _, name := range []string{pipeline.CountPredictions, pipeline.CountLabels, pipeline.CountJoined,
		pipeline.CountLabelled, pipeline.CountLate,
		pipeline.CountExpired, pipeline.CountOrphans, pipeline.CountEvicted, pipeline.CountDuplicates,
		pipeline.CountPooled,
		pipeline.CountMet, pipeline.CountCorrections, pipeline.CountWaiting, pipeline.CountWaitingLabels} {
		out[name] = int64(0)
	}
	for _, t := range tasks {
		for name, n := range t.Counts {
			head, reason, by := strings.Cut(name, ":")
			if !by {
				have, _ := out[head].(int64)
				out[head] = have + n
				continue
			}
			m, _ := out[head].(map[string]int64)
			if m == nil {
				m = map[string]int64{}
				out[head] = m
			}
			m[reason] += n
		}
	}
	return out
}

var errNotAssigned = errors.New("no partition is assigned to this process yet")

// Ready is nil once this process is in the group of each of its stages and has tasks that have restored their state,
// while none of them fails and the process is not paused. Of a stage it need have no task: there may be more processes
// than partitions.
func (p *process) Ready() error {
	if st := p.paused(); st != nil {
		return fmt.Errorf("paused since %s by %q: %s", st.Since.Format(time.RFC3339), st.By, st.Why)
	}
	if failing := p.attempts.Failing(); len(failing) > 0 {
		var all []string
		for i := range failing {
			all = append(all, failing[i].String())
		}
		return errors.New(strings.Join(all, "; "))
	}
	if outside := p.due.outside(time.Now()); len(outside) > 0 {
		var all []string
		for _, s := range outside {
			all = append(all, s.String())
		}
		return errors.New(strings.Join(all, "; "))
	}
	if err := p.shutOut(); err != nil {
		return err
	}
	tasks, complete := p.Statuses()
	if all := p.assigned(); !complete && all > 0 {
		return fmt.Errorf("%d of %d tasks have not restored their state and taken a first checkpoint yet",
			all-len(tasks), all)
	} else if !complete {
		return errNotAssigned
	}
	return nil
}

// An input is named that has been silent for silentNoted, and is so far behind the others that it is not their noise.
const (
	silentNoted = 10 * time.Second
	behindNoted = time.Minute
)

// waitingStatus is a partition without messages that holds back the panes of every model.
type waitingStatus struct {
	Topic     string    `json:"topic"`
	Partition int       `json:"partition"`
	Input     string    `json:"input"`
	Since     time.Time `json:"since"` // wall clock, or since this process reads it
	// Text says it to a person, Mend what to do if the topic is not used.
	Text string `json:"text"`
	Mend string `json:"mend,omitempty"`

	task string
}

// waitingFor lists the inputs that hold panes back: read to their end, silent, not released by
// event_time.idle_timeout, and behind the others or without any message yet. Where topics are split by id these are the
// producers' topics, if this process reads them; what it makes of them is silent because they are.
func (p *process) waitingFor(tasks []*pipeline.TaskStatus, now time.Time) (out []waitingStatus) {
	newest := pipeline.NoTime
	for _, t := range tasks {
		for _, wm := range t.Inputs {
			newest = max(newest, wm)
		}
	}
	split := map[string]bool{} // inputs whose producers are named
	p.running.mu.Lock()
	defer p.running.mu.Unlock()
	for _, t := range tasks {
		src := p.sources[taskName(t.Task, t.Partition)]
		if src == nil || t.Task == stageModels {
			continue
		}
		for in, silence := range src.Silent() {
			if !holds(t, in, silence, newest, now) {
				continue
			}
			split[in.String()] = split[in.String()] || t.Task != stageShards
			if silence.Unread { // that is said as a task that fails
				continue
			}
			out = append(out, waitingStatus{Topic: silence.Topic, Partition: t.Partition, Input: in.String(),
				Since: silence.Since, Text: fmt.Sprintf("waiting for %s/%d %s", silence.Topic, t.Partition,
					waitText(silence)), Mend: unused(p.config, in, silence), task: t.Task})
		}
	}
	out = slices.DeleteFunc(out, func(w waitingStatus) bool { return w.task == stageShards && split[w.Input] })
	slices.SortFunc(out, func(a, b waitingStatus) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// holds reports whether a silent input of a task holds panes back, by the newest watermark of all inputs.
func holds(t *pipeline.TaskStatus, in pipeline.Input, s kafkaio.Silence, newest pipeline.Time, now time.Time) bool {
	quiet := now.Sub(s.Since)
	switch {
	case quiet < silentNoted:
		return false
	case t.Task != stageShards: // it knows no event times
		return s.Never || quiet >= behindNoted
	case int(in) >= len(t.Inputs):
		return false
	}
	return t.Inputs[in] == pipeline.NoTime || t.Inputs[in] <= newest-int64(behindNoted)
}

// unused says how nobody waits for a topic of Arrow messages that no producer may use, since there are inputs. That it
// is empty does not show that: its producers may start later, and their rows must not be late for it.
func unused(cfg *config.Config, in pipeline.Input, s kafkaio.Silence) string {
	own, kind := cfg.Topics.Logits, arrowio.Predictions
	if in == pipeline.Labels {
		own, kind = cfg.Topics.Labels, arrowio.Labels
	}
	named := slices.ContainsFunc(cfg.Inputs, func(c inputs.Config) bool { return c.Kind() == kind })
	is := slices.ContainsFunc(cfg.Inputs, func(c inputs.Config) bool { return c.Topic == own })
	switch {
	case !s.Never || s.Topic != own || is || len(cfg.Inputs) == 0:
	case named:
		return fmt.Sprintf("if nobody sends to %s, start a new group where topics.%s names a topic of inputs", own, in)
	case in == pipeline.Labels:
		return fmt.Sprintf("if nobody sends to %s, start a new group where topics.labels is empty", own)
	}
	return ""
}

// waitText says since when an input has been waited for, and when that ends by itself.
func waitText(s kafkaio.Silence) string {
	text := "since " + s.Since.Format(time.TimeOnly)
	if !s.Until.IsZero() {
		text += ", until " + s.Until.Format(time.TimeOnly) + " (event_time.idle_timeout)"
	}
	return text
}
