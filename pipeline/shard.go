package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// WatermarkHeader marks a control record: an empty value, and in this header decimal Unix nanoseconds t, which
// promise that no row with an event time before t follows in this partition of this topic.
const WatermarkHeader = "plumbline-watermark"

// maxBuffered is how many bytes of outputs a task holds before it takes a checkpoint ahead of time.
const maxBuffered = 32 << 20

// Decoder decodes one message; the batches are released by the shard.
type Decoder interface {
	Decode(value []byte, o arrowio.Origin, kind arrowio.Kind) ([]*arrowio.Batch, error)
}

// ShardSpec has the parts of a shard. All of them belong to the shard alone, and none may be nil but Clocks of Host.
type ShardSpec struct {
	ID         int        // also the number of its partitions
	Inputs     int        // 1: labels travel with the logits; 2: labels topic. The Watermark is of as many
	PaneLength int64      // ns; the Outbox has the same
	Watermark  *Watermark // its Clocks are those of Host
	Decoder    Decoder
	Stages     []Stage
	// CheckpointRows asks for a checkpoint after so many rows; 0 = by time only.
	CheckpointRows int64
	// CalibratedAtOnce has the calibrated stream written before the checkpoint that holds its rows.
	CalibratedAtOnce bool
	Host
}

// Shard is one partition, one goroutine, one state, one checkpoint.
type Shard struct {
	ShardSpec
	next   []int64  // first offset not yet taken, by input; -1 = from the start of the log
	topics []string // by input, of the latest record; "" = none has come since the start
	dirty  bool
	rows   int64 // since the last checkpoint
	woke   bool  // no longer idle, which no message says yet
	layout layout
	panes  punctuator
	chain  *chain      // of Stages; nil before the first record
	soon   func() Time // the watermark after this record: what stages still hold back is late then
	status atomic.Pointer[TaskStatus]
	trace  *tracing.Lane
}

// TaskStatus is what a task reports about itself.
type TaskStatus struct {
	Task      string            `json:"task"`
	Partition int               `json:"partition"`
	Next      map[string]int64  `json:"next_offsets"`
	Watermark string            `json:"watermark,omitempty"`
	WM        Time              `json:"-"`
	CaughtUp  bool              `json:"caught_up"` // read to the end of the log, and everything written
	Counts    map[string]int64  `json:"counts,omitempty"`
	StateHash map[string]string `json:"state_hash,omitempty"` // by model
	Active    time.Time         `json:"last_active"`
	// PanesWritten: a shard's last message number by panes partition. PanesTaken: on a model task, the last number
	// taken by shard.
	PanesWritten []uint64 `json:"-"`
	Inputs       []Time   `json:"-"` // a shard's watermark by input; NoTime: nothing has come
	PanesTaken   []uint64 `json:"-"`
	// Epoch: a shard's current epoch. Epochs: on a model task, the last epoch seen per shard.
	Epoch  uint64   `json:"-"`
	Epochs []uint64 `json:"-"`
	// Versions are the model versions of a model task, by name.
	Versions []record.VersionStatus `json:"-"`
	// Losses are the losses in the task's state.
	Losses []*record.Loss `json:"losses,omitempty"`
}

// NewShard returns a shard at the start of its inputs.
func NewShard(spec ShardSpec) *Shard {
	s := &Shard{ShardSpec: spec, next: make([]int64, spec.Inputs), topics: make([]string, spec.Inputs),
		layout: layout{of: spec.Outbox.of}, panes: punctuator{spec.Watermark, spec.Outbox, spec.PaneLength}}
	for i := range s.next {
		s.next[i] = -1
	}
	s.soon = func() Time { return max(s.Watermark.Now(), s.Watermark.next(s.PaneLength)) }
	s.Outbox.next, s.Outbox.announce = s.next, s.panes.announce
	return s
}

func (s *Shard) stages() *chain {
	if s.chain == nil {
		s.chain = newChain(s.Stages)
	}
	return s.chain
}

// Follow reports where the shard's records are to a lane of the tracer.
func (s *Shard) Follow(l *tracing.Lane) { s.trace, s.Out.trace, s.Outbox.trace = l, l, l }

// Name keys the shard's checkpoints.
func (s *Shard) Name() string { return fmt.Sprintf("shard-%05d", s.ID) }

// Next returns the first offset to read, by input; -1 means the start of the log.
func (s *Shard) Next() map[Input]int64 {
	m := map[Input]int64{}
	for i, o := range s.next {
		m[Input(i)] = o
	}
	return m
}

// Status returns the latest status, nil before the first.
func (s *Shard) Status() *TaskStatus { return s.status.Load() }

// Take processes one record.
func (s *Shard) Take(ctx context.Context, r Record) error {
	if r.Paused {
		s.Watermark.awake()
		s.Closing()
		s.woke = s.dirty // a checkpoint now
		return nil
	}
	if r.Topic != "" {
		s.topics[r.Input] = r.Topic
	}
	if r.Idle {
		s.Watermark.Idle(r.Input)
		return s.releaseIdle(ctx, r.Input)
	}
	if r.Offset < s.next[r.Input] {
		return nil
	}
	s.Out.Begin(r)
	s.dirty = true
	if err := s.take(ctx, r); err != nil {
		return err
	}
	if err := s.stages().release(ctx, s.soon); err != nil {
		return err
	}
	s.Out.End()
	s.next[r.Input] = r.Offset + 1
	return s.advance(ctx)
}

// releaseIdle lets rows go on that stages hold back, and that an idle input makes late. If one of them is rejected, the
// dead letter has the place of the input's latest record, as it has that of any record whose coming lets a row go on.
func (s *Shard) releaseIdle(ctx context.Context, in Input) error {
	s.Out.Begin(Record{Input: in, Topic: s.topics[in], Partition: int32(s.ID), Offset: max(s.next[in], 0) - 1})
	if err := s.stages().release(ctx, s.soon); err != nil {
		return err
	}
	s.dirty = s.dirty || s.Out.letter.said
	s.Out.End()
	return s.advance(ctx)
}

// Skip passes over a record that would end the task again, and dead-letters it.
func (s *Shard) Skip(r Record, why string) bool {
	if r.Offset < s.next[r.Input] {
		return true
	}
	s.Counts.AddReason(CountMessages, r.Input.String(), 1)
	if p, _, ok, err := provenance(&r); ok && err == nil {
		r.Headers = rowsAfter(r.Headers, s.Watermark.takenOf(r.Input, p))
	}
	s.Out.Skipped(r, s.Outbox.of, why)
	s.next[r.Input] = r.Offset + 1
	s.dirty = true
	return true
}

func (s *Shard) take(ctx context.Context, r Record) error {
	if r.Unread != nil {
		s.Counts.AddReason(CountMessages, r.Input.String(), 1)
		s.Out.Refuse(r.Unread.Reason, r.Unread.Detail)
		return nil
	}
	src, fresh := s.from(&r)
	if !fresh {
		return nil
	}
	if src != nil { // the first reader has compared it with the clock
		r.Ahead = carriesAhead(&r)
	} else if r.Ahead {
		s.Out.Ahead(&r)
	}
	if t, ok, err := controlTime(r); ok {
		if err == nil {
			err = s.Watermark.believe(&r, t, s.PaneLength)
		}
		s.control(r.Input, src, t, err)
		return nil
	}
	s.Counts.AddReason(CountMessages, r.Input.String(), 1)
	kind := arrowio.Predictions
	if r.Input == Labels {
		kind = arrowio.Labels
	}
	decoded := s.trace.Stage("decode")
	bs, err := s.Decoder.Decode(r.Value, arrowio.Origin{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Time: r.Time, Ahead: r.Ahead}, kind)
	decoded()
	if err != nil {
		var de *arrowio.DecodeError
		if !errors.As(err, &de) {
			return fmt.Errorf("decode %s partition %d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		s.Out.Refuse(de.Reason, de.Detail)
		return nil
	}
	of := sourceRows(r.Headers)
	for i, b := range bs {
		if b.Sources = nil; len(of) >= b.N {
			b.Sources, of = of[:b.N], of[b.N:]
		}
		s.Counts.AddReason(CountRows, r.Input.String(), int64(b.N))
		s.rows += int64(b.N)
		if err == nil {
			var rejects Rejects
			s.Out.NextBatch(b.N)
			if rejects, err = (&tracedChain{s.trace, s.PaneLength}).through(ctx, s.stages(), b); err == nil {
				s.Watermark.observeBatch(r.Input, src, b, rejects)
			}
		}
		bs[i].Release()
	}
	if err != nil {
		return fmt.Errorf("%s partition %d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	return nil
}

// control takes a control record; err says that its time cannot be read.
func (s *Shard) control(in Input, src *sourceMark, t Time, err error) {
	s.Counts.Add(CountControl, 1)
	if err != nil {
		s.Out.Refuse("control", err.Error())
		return
	}
	if src != nil {
		src.control = max(src.control, t)
	}
	s.Watermark.Control(in, t) // counts where all sources are idle, as the newest row does
}

// from finds the source of a message that the repartition stage wrote; src is nil for messages of others. fresh is
// false if there is nothing more to do: the message is a repeat, only announces the state of its source, or has an
// unreadable header.
func (s *Shard) from(r *Record) (src *sourceMark, fresh bool) {
	p, idle, ok, err := provenance(r)
	switch {
	case !ok, err == nil && idle == "" && s.Watermark.foreign(r.Input, p):
		return nil, true
	case err == nil && s.Watermark.foreign(r.Input, p):
		err = fmt.Errorf("source %.64s: no such unkeyed topic is configured", p.Topic)
	case err == nil && idle != "":
		s.Counts.Add(CountControl, 1)
		err = s.Watermark.sourceIdle(r.Input, p, idle == "1")
	case err == nil:
		taken := s.Watermark.takenOf(r.Input, p)
		if src, fresh, err = s.Watermark.source(r.Input, p); fresh {
			fresh = s.leaveOut(r, taken)
		}
		if err == nil && !fresh {
			s.Counts.AddReason(CountRepeats, r.Input.String(), 1)
		}
	}
	if err != nil {
		s.Out.Refuse("source", err.Error())
		return nil, false
	}
	return src, fresh
}

// leaveOut removes the rows of records up to an offset, which the shard has taken, from a message of several records.
// Which records go together depends on what was at hand, and differs between two readers of a source. false: no row is
// left.
func (s *Shard) leaveOut(r *Record, taken int64) bool {
	of := sourceRows(r.Headers)
	if len(of) == 0 || slices.Min(of) > taken {
		return true
	}
	kind := arrowio.Predictions
	if r.Input == Labels {
		kind = arrowio.Labels
	}
	row := -1
	parts, err := arrowio.NewSplitter(arrowio.Options{}).Split(r.Value, arrowio.Origin{Time: r.Time}, kind, 1,
		func([]byte) int {
			if row++; row < len(of) && of[row] <= taken {
				return -1
			}
			return 0
		})
	switch {
	case err != nil: // it cannot be decoded: that is said of the whole
		return true
	case len(parts) == 0:
		return false
	}
	r.Value, r.Headers = parts[0].Value, rowsAfter(r.Headers, taken)
	s.Out.Begin(*r)
	return true
}

func (s *Shard) advance(ctx context.Context) error {
	before := s.panes.closed()
	s.panes.announce()
	s.Watermark.Advance(s.PaneLength)
	models, gone := s.Watermark.Clocks.close(s.PaneLength)
	closed, idle := s.panes.closed(), s.Watermark.AllIdle()
	whole := closed != before || idle != s.Outbox.idle
	if !whole && len(models) == 0 && len(gone) == 0 {
		return nil
	}
	s.dirty = true
	if closed != before || len(models) > 0 {
		wm := s.Watermark.Clocks.Least(s.PaneLength)
		if err := s.stages().advance(ctx, wm); err != nil {
			return fmt.Errorf("advance to %s: %w", Format(wm), err)
		}
	}
	s.woke = s.woke || s.Outbox.idle && !idle
	if closed != math.MinInt64 {
		s.Outbox.epoch.reached(s.Watermark.Now(), s.Watermark.Lateness)
	}
	if models = append(models, gone...); whole {
		models = nil
	}
	s.panes.tell(idle, models, gone)
	return nil
}

// Closing takes back that the shard is idle: otherwise model tasks would not wait for rows that come before the next
// reader starts.
func (s *Shard) Closing() {
	s.dirty = s.panes.busy() || s.dirty
}

// IsControl reports whether a record is a control record.
func IsControl(r *Record) bool {
	_, ok, _ := controlTime(*r)
	return ok
}

func controlTime(r Record) (t Time, ok bool, err error) {
	for _, h := range r.Headers {
		if h.Key == WatermarkHeader && len(r.Value) == 0 {
			t, err = strconv.ParseInt(string(h.Value), 10, 64)
			return t, true, err
		}
	}
	return 0, false, nil
}

// Decided implements Task. The task asks for an early checkpoint (Full) when its outputs are many, when its rows are
// many, when the clock is first in doubt: what is written tells the brokers' time; or when it is no longer idle: model
// tasks go on without an idle shard until it says so.
func (s *Shard) Decided() Outputs {
	full := s.woke || s.Out.doubtsClock() || s.CheckpointRows > 0 && s.rows >= s.CheckpointRows ||
		s.Out.bytes > maxBuffered || s.Outbox.bytes > maxBuffered
	return Outputs{Before: s.Out.pending, After: s.Outbox.Pending(), Dirty: s.dirty, Full: full}
}

// Written implements Task.
func (s *Shard) Written() {
	s.dirty, s.woke, s.rows = false, false, 0
	s.Out.clear()
	s.Outbox.Clear()
}

// Sections are the parts of the checkpoint.
func (s *Shard) Sections() []Section {
	out := []Section{
		offsetsSection((*offsets)(&s.next)),
		watermarkSection(s.Watermark),
		s.Counts.CheckpointSection(),
		{Name: "outbox", Version: 1, State: s.Outbox},
		s.Outbox.epoch.CheckpointSection(),
		{Name: layoutSection, Version: 1, State: &s.layout},
	}
	for i := range s.Stages {
		if section, ok := s.Stages[i].section(); ok {
			out = append(out, section)
		}
	}
	return out
}

func watermarkSection(w *Watermark) Section { return Section{Name: "watermark", Version: 3, State: w} }

// offsets is, by input, the first offset not taken.
type offsets []int64

func offsetsSection(o *offsets) Section { return Section{Name: "offsets", Version: 1, State: o} }

// AppendState appends uvarint inputs, each varint first offset not taken (−1 = start of the log).
func (o *offsets) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(*o)))
	for _, v := range *o {
		dst = binenc.AppendVarint(dst, v)
	}
	return dst, nil
}

func (o *offsets) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	n := r.Count(1, 16)
	if r.Err() == nil && n != len(*o) {
		return fmt.Errorf("the checkpoint has %d inputs, the configuration %d (topics.labels set or unset since)", n,
			len(*o))
	}
	for i := range n {
		(*o)[i] = r.Varint()
	}
	return r.Err()
}

// isEOF reports whether err ends a bounded input.
func isEOF(err error) bool { return errors.Is(err, io.EOF) }
