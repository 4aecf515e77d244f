package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Rejects has, for each row, the reason why it is rejected, "" for a good row; nil if all rows are good.
type Rejects []string

// Emit hands a batch to the rest of the chain and returns when the chain has processed it, with the result of the next
// operator's Process.
type Emit func(*arrowio.Batch) (Rejects, error)

// Operator handles the batches of one shard; one goroutine calls it, so it needs no lock.
type Operator interface {
	// Process observes or transforms b, which is read-only and valid until Process returns. Rows that b.Reject names
	// take no part. An operator that rejects further rows emits a batch that says so (arrowio.Batch.WithReject).
	//
	// Process returns the rejects of b's rows after it and all that follow it have seen them. An operator that passes b
	// on returns what emit returns; one that does not returns those of b and its own.
	Process(ctx context.Context, b *arrowio.Batch, emit Emit) (Rejects, error)
	// Advance reports that the watermark is now wm: rows with an earlier event time are late from here on.
	Advance(ctx context.Context, wm Time, emit Emit) error
	// State returns what a checkpoint must hold, or nil if there is nothing.
	State() State
}

// State is what a checkpoint stores. AppendState is canonical: equal states give equal bytes. After a failed
// RestoreState the receiver may be half restored, and the caller discards it.
type State interface {
	AppendState(dst []byte) ([]byte, error)
	RestoreState(src []byte) error
}

// Fetch makes a checkpoint's file available at a path; a link is enough, because files never change.
type Fetch func(name, path string) error

// File is one of the files that a checkpoint refers to.
type File struct {
	Name  string // lower-case hexadecimal, of package filesum
	Bytes int64
	Path  string // where it is now
}

// FileState is the part of a State that is stored in files that never change; a checkpoint refers to them by name.
type FileState interface {
	// Files returns the files that the latest AppendState refers to. They stay until the next one.
	Files() []File
	// RestoreFiles is called in place of RestoreState.
	RestoreFiles(src []byte, fetch Fetch) error
}

// Host is what a shard shares with its operators.
type Host struct {
	Out    *Out    // takes messages that are written before the next checkpoint
	Outbox *Outbox // takes panes, which are written after it
	Counts *Counts
	Clocks *Clocks // of each model, Watermark.Clocks; nil: what Advance tells holds for all
	Log    *slog.Logger
}

// Stage is an operator as it is registered: its name, which keys its state in checkpoints, and its optional functions
// beside the methods of Operator, nil if it has none.
type Stage struct {
	Name     string
	Operator Operator
	Version  byte                        // of the encoding of its state
	Oldest   byte                        // of the versions that it reads; 0 = Version
	Files    FileState                   // part of its state is in files
	Fresh    func()                      // called when a checkpoint without its state has been restored
	Durable  func()                      // called when a checkpoint with its latest state is durable
	End      func(context.Context) error // called at the end of the input, where no checkpoint follows
	Close    func() error
	// Take moves, from the same stage of a shard of another number of shards, the state of ids for which mine is true,
	// and what every shard has to know. nil: the state stays with the shard of the same ID.
	Take func(from Operator, mine func(arrowio.ID) bool) error
	// Release emits rows that the stage holds back and that would soon be late; wm returns the coming watermark. It is
	// called after each record, before panes are closed.
	Release func(ctx context.Context, wm func() Time, emit Emit) error
	// Reopen reports that the watermark has been set back to wm.
	Reopen func(wm Time)
}

// section returns the stage's part of a checkpoint; ok is false if it has none.
func (st *Stage) section() (s Section, ok bool) {
	state := st.Operator.State()
	return Section{Name: "operator/" + st.Name, Version: st.Version, Oldest: st.Oldest, State: state, Files: st.Files,
		Fresh: st.Fresh}, state != nil
}

// chain is a shard's stages in order. Their Emit functions are made once: making them for each batch would be a third
// of the memory that a message of one row takes.
type chain struct {
	stages []Stage
	emits  []Emit          // emits[i] is what stage i emits to
	ctx    context.Context // of the current call
}

func newChain(stages []Stage) *chain {
	c := &chain{stages: stages, emits: make([]Emit, len(stages))}
	for i := range stages {
		c.emits[i] = func(b *arrowio.Batch) (Rejects, error) { return c.from(i+1, b) }
	}
	return c
}

// from pushes a batch through stage i and those after it.
func (c *chain) from(i int, b *arrowio.Batch) (Rejects, error) {
	if i == len(c.stages) {
		return b.Reject, nil
	}
	return c.stages[i].Operator.Process(c.ctx, b, c.emits[i])
}

// push pushes a batch through the stages.
func (c *chain) push(ctx context.Context, b *arrowio.Batch) (Rejects, error) {
	c.ctx = ctx
	return c.from(0, b)
}

// advance reports the watermark to the stages in order, so that what one releases reaches the next before the next
// advances.
func (c *chain) advance(ctx context.Context, wm Time) error {
	c.ctx = ctx
	for i := range c.stages {
		if err := c.stages[i].Operator.Advance(ctx, wm, c.emits[i]); err != nil {
			return err
		}
	}
	return nil
}

// release has the stages emit rows that would be late at the coming watermark, which wm returns.
func (c *chain) release(ctx context.Context, wm func() Time) error {
	c.ctx = ctx
	for i := range c.stages {
		st := &c.stages[i]
		if st.Release == nil {
			continue
		}
		if err := st.Release(ctx, wm, c.emits[i]); err != nil {
			return fmt.Errorf("%s: %w", st.Name, err)
		}
	}
	return nil
}

// durable reports to the stages that a checkpoint of the shard is durable.
func (c *chain) durable() {
	for i := range c.stages {
		if f := c.stages[i].Durable; f != nil {
			f()
		}
	}
}

// reopen reports to the stages that the watermark has been set back.
func (c *chain) reopen(wm Time) {
	for i := range c.stages {
		if f := c.stages[i].Reopen; f != nil {
			f(wm)
		}
	}
}

// end reports to the stages that the input has ended, if no checkpoint follows.
func (c *chain) end(ctx context.Context) error {
	for i := range c.stages {
		if f := c.stages[i].End; f != nil {
			if err := f(ctx); err != nil {
				return fmt.Errorf("%s: %w", c.stages[i].Name, err)
			}
		}
	}
	return nil
}

// close closes the stages that hold files or other resources.
func (c *chain) close() error {
	var errs []error
	for i := range c.stages {
		if f := c.stages[i].Close; f != nil {
			errs = append(errs, f())
		}
	}
	return errors.Join(errs...)
}

// Stages that traces know by name.
const (
	stageJoin  = "join"
	stageStats = "stats"
)

// tracedChain pushes batches through a chain and traces them.
type tracedChain struct {
	trace *tracing.Lane
	pane  int64 // length
}

// through pushes a batch of the current record through the stages, with spans if the record is traced.
func (t *tracedChain) through(ctx context.Context, c *chain, b *arrowio.Batch) (Rejects, error) {
	if !t.trace.On() && !t.trace.Awaits() {
		return c.push(ctx, b)
	}
	kind := "predictions"
	if b.Kind == arrowio.Labels {
		kind = "labels"
	}
	t.trace.Set("plumbline.kind", kind)
	t.trace.Set("plumbline.rows", int64(b.N))
	if len(b.Models) > 0 {
		t.trace.Set("plumbline.model", b.Models[0].Model)
		t.trace.Set("plumbline.version", b.Models[0].Version)
	}
	if b.N > 0 && b.TS != nil {
		t.trace.Set("plumbline.event_time", Format(b.TS[0]))
	}
	return t.push(ctx, c.stages, b)
}

// push is like chain.push, with a span for each stage.
func (t *tracedChain) push(ctx context.Context, stages []Stage, b *arrowio.Batch) (Rejects, error) {
	if len(stages) == 0 {
		return b.Reject, nil
	}
	end := t.trace.Stage(stages[0].Name, tracing.Attr{Key: "plumbline.rows", Value: int64(b.N)})
	defer end()
	switch stages[0].Name {
	case stageJoin:
		if i, ok := firstID(b); ok && b.Kind == arrowio.Predictions {
			t.trace.Await(b.IDs[i])
		}
	case stageStats:
		t.hold(b)
	}
	return stages[0].Operator.Process(ctx, b, func(out *arrowio.Batch) (Rejects, error) {
		return t.push(ctx, stages[1:], out)
	})
}

// firstID returns the first good row of a batch that waits for its label.
func firstID(b *arrowio.Batch) (row int, ok bool) {
	if b.IDs == nil {
		return 0, false
	}
	for i := range b.N {
		if b.Good(i) && (b.Label == nil || b.Label[i] < 0) {
			return i, true
		}
	}
	return 0, false
}

// hold notes which panes a batch counts in, so that their traces link to its record and to the records whose labels it
// has.
func (t *tracedChain) hold(b *arrowio.Batch) {
	if b.Kind == arrowio.Labels {
		return
	}
	times, last := b.TS, tracing.Pane{}
	if b.LabelTS != nil {
		times = b.LabelTS
	}
	for i := range b.N {
		if !b.Good(i) {
			continue
		}
		m, _ := b.ModelOf(i)
		p := tracing.Pane{Model: m.Model, Index: PaneIndex(times[i], t.pane)}
		if p != last {
			t.trace.Hold(p)
			last = p
		}
		if b.Kind == arrowio.Labelled && b.IDs != nil && t.trace.Awaits() {
			t.trace.Met(b.IDs[i], p)
		}
	}
}
