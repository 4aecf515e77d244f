package pipeline

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/murmur"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// maxIncrement is the size, in bytes of cells, at which a pane message is closed.
const maxIncrement = 512 << 10

// Outbox holds the pane messages that a shard has decided on but may not show yet. They are part of the
// checkpoint; only when that is durable are they written. So what the model tasks have seen is never decided
// anew after a crash, although the interleaving of the two inputs, and with it which rows came late, may differ.
//
// Invariant: messages of one epoch and panes partition carry consecutive Seq, from 1.
type Outbox struct {
	shard, of int
	epoch     *Epoch
	next      []int64 // shared with the shard: by input, the first offset not yet taken
	length    int64
	seq       []uint64
	idle      bool // as in the last punctuation
	pending   []Message
	bytes     int // of the pending messages' values
	trace     *tracing.Lane
	announce  func() // tells of models that are new; nil in tests
}

// NewOutbox returns the empty outbox of one shard, of so many, for a panes topic of so many partitions. paneLength is
// in ns.
func NewOutbox(shard, of int, paneLength int64, partitions int) *Outbox {
	return &Outbox{shard: shard, of: of, epoch: &Epoch{}, length: paneLength, seq: make([]uint64, partitions)}
}

// Increment adds the cells of one label pane of one model, split into messages of a bounded size. It may be called at
// any time, several times for a label pane: model tasks add the cells until the pane is closed.
func (o *Outbox) Increment(model string, labelPane int64, late bool, cells []Cell) {
	if o.announce != nil {
		o.announce()
	}
	p := murmur.PartitionOf([]byte(model), len(o.seq))
	defer o.trace.Enter(tracing.Pane{Model: model, Index: labelPane})()
	for len(cells) > 0 {
		n, size := 0, 0
		for n < len(cells) && (n == 0 || size+len(cells[n].Set) <= maxIncrement) {
			size += len(cells[n].Set)
			n++
		}
		o.put(p, []byte(model), &PaneMessage{Model: model, LabelPane: labelPane, Late: late, Cells: cells[:n]})
		cells = cells[n:]
	}
}

// Punctuation says which label panes a shard has closed.
type Punctuation struct {
	Closed int64         // label panes before this one are complete
	Idle   bool          // the shard has nothing more to read
	Apart  []ModelClosed // models with another first open pane than the shard
	Of     []string      // models with news; nil = all
}

// Punctuate tells panes partitions which label panes are complete: all of them, or those of the models in u.Of.
func (o *Outbox) Punctuate(u Punctuation) {
	o.idle = u.Idle
	by := make([][]ModelClosed, len(o.seq))
	for _, m := range u.Apart {
		p := murmur.PartitionOf([]byte(m.Model), len(o.seq))
		by[p] = append(by[p], m)
	}
	told := map[int]bool{}
	for _, m := range u.Of {
		told[murmur.PartitionOf([]byte(m), len(o.seq))] = true
	}
	var loss *record.Loss
	if u.Of == nil { // for all partitions
		loss = o.epoch.tell()
	}
	for p := range o.seq {
		if u.Of == nil || told[p] {
			o.put(p, nil, &PaneMessage{Punctuation: true, Closed: u.Closed, Idle: u.Idle, Models: by[p], Next: o.next,
				Loss: loss})
		}
	}
}

func (o *Outbox) put(p int, key []byte, m *PaneMessage) {
	o.seq[p]++
	m.Shard, m.Of, m.Epoch, m.Seq, m.Length = o.shard, o.of, o.epoch.ID, o.seq[p], o.length
	room := 96 + len(m.Model) // many small messages may wait here
	for i := range m.Cells {
		c := &m.Cells[i]
		room += 32 + len(c.Version) + len(c.Slice) + len(c.Set)
	}
	out := Message{Stream: StreamPanes, Partition: int32(p), Key: key, Value: AppendPane(make([]byte, 0, room), m)}
	if !m.Punctuation {
		CarryTrace(o.trace, &out)
	}
	o.pending = append(o.pending, out)
	o.bytes += len(out.Value)
}

// Pending returns the messages to be written after the next checkpoint.
func (o *Outbox) Pending() []Message { return o.pending }

// Clear forgets the pending messages: they have been written.
func (o *Outbox) Clear() { o.pending, o.bytes = nil, 0 }

// AppendState appends uvarint panes partitions, each uvarint seq of the last message; u8 whether the last punctuation
// said idle; uvarint pending messages, each uvarint partition, bytes key, bytes pane message.
func (o *Outbox) AppendState(dst []byte) ([]byte, error) { return o.Freeze()(dst) }

// Freeze implements Freezer: messages that wait never change.
func (o *Outbox) Freeze() func(dst []byte) ([]byte, error) {
	head := binenc.AppendUvarint(nil, uint64(len(o.seq)))
	for _, s := range o.seq {
		head = binenc.AppendUvarint(head, s)
	}
	head = append(head, binenc.Flags(o.idle))
	pending, bytes := o.pending, o.bytes
	return func(dst []byte) ([]byte, error) { return appendPending(append(dst, head...), pending, bytes) }
}

func appendPending(dst []byte, pending []Message, bytes int) ([]byte, error) {
	const most = 64 // bytes of a message beside its value, mostly
	dst = slices.Grow(dst, bytes+most*(len(pending)+1))
	dst = binenc.AppendUvarint(dst, uint64(len(pending)))
	for _, m := range pending {
		dst = binenc.AppendUvarint(dst, uint64(m.Partition))
		dst = binenc.AppendBytes(dst, m.Key)
		dst = binenc.AppendBytes(dst, m.Value)
	}
	return dst, nil
}

// RestoreState reads what AppendState wrote. A panes topic of another size is refused: sequence numbers,
// and the models' places, are by partition.
func (o *Outbox) RestoreState(src []byte) error {
	was := len(o.seq)
	if err := o.restore(src); err != nil {
		return err
	}
	if n := len(o.seq); n != was {
		return fmt.Errorf("the checkpoint is of a panes topic with %d partitions, it has %d now", n, was)
	}
	return nil
}

// restore reads the state of a panes topic of any size.
func (o *Outbox) restore(src []byte) error {
	r := binenc.NewReader(src)
	o.seq = make([]uint64, r.Count(1, 1<<20))
	for i := range o.seq {
		o.seq[i] = r.Uvarint()
	}
	o.idle = r.Byte() == 1
	k := r.Count(3, 1<<24)
	o.Clear()
	for range k {
		m := Message{Stream: StreamPanes, Partition: int32(r.Uvarint())}
		m.Key = append([]byte(nil), r.Bytes(maxPaneName)...)
		m.Value = append([]byte(nil), r.Bytes(maxPaneBytes)...)
		if r.Err() != nil {
			break
		}
		o.pending = append(o.pending, m)
		o.bytes += len(m.Value)
	}
	return r.Err()
}

// Epoch is a period in which a task's state was not lost. Readers of the task's numbered messages start counting again
// in another epoch.
type Epoch struct {
	// ID names the epoch; it is 0 in a replay, whose messages stay in the process. It is even if a person has ordered
	// the epoch.
	ID uint64
	// Loss is what was lost with the epoch before, if a person has ordered this one; nil = it is the first.
	Loss *record.Loss

	known bool // Loss has its end, the shard has reached an event time
	told  bool // the loss was announced on the panes topic
}

// NewEpoch draws an epoch.
func NewEpoch() uint64 { return rand.Uint64() | 1 }

// OwnEpoch returns the shard's epoch.
func (o *Outbox) OwnEpoch() *Epoch { return o.epoch }

// Begin starts an epoch: one that a person has ordered after a loss or, if loss is nil, the first one.
func (e *Epoch) Begin(epoch uint64, loss *record.Loss) {
	if loss != nil {
		epoch = epoch&^1 | 2
	}
	*e = Epoch{ID: epoch, Loss: loss}
}

// Again returns a suffix for file names, so that files of this epoch never meet those of the epoch before. It is empty
// in the first epoch and in a replay.
func (e *Epoch) Again() string {
	if e.ID == 0 || e.ID&1 == 1 {
		return ""
	}
	return fmt.Sprintf("%016x", e.ID)
}

// Again returns the file-name suffix of the shard's epoch.
func (o *Outbox) Again() string { return o.epoch.Again() }

// Move notes a loss of records that were never read. The state stays as it is, so the epoch goes on.
func (e *Epoch) Move(loss *record.Loss) { e.Loss, e.known, e.told = loss, false, false }

// Add notes a loss of another task that this shard tells of. One that it has not told yet is told with it. A loss
// without an end ends as that of Move.
func (e *Epoch) Add(loss *record.Loss) {
	if e.Loss != nil && !e.told {
		loss = e.Loss.With(loss)
	}
	e.Move(loss)
	e.known = !loss.Until.IsZero()
}

// CheckpointSection is the epoch's part of a checkpoint. It is named life, as epochs were once called.
func (e *Epoch) CheckpointSection() Section { return Section{Name: "life", Version: 1, State: e} }

// reached ends the loss at the first newest event time that the shard sees: all lost rows came before it.
func (e *Epoch) reached(wm Time, lateness int64) {
	if e.Loss == nil || e.known {
		return
	}
	loss := *e.Loss
	if wm < EndTime-lateness {
		loss.Until = record.At(wm + lateness)
	}
	e.Loss, e.known = &loss, true
}

// tell returns the loss when its bounds are known, and only the first time.
func (e *Epoch) tell() *record.Loss {
	if !e.known || e.told {
		return nil
	}
	e.told = true
	return e.Loss
}

// AppendState appends fixed64 epoch, u8 flags (1: there is a loss, 2: its end is known, 4: it was announced), the loss
// as bytes of JSON.
func (e *Epoch) AppendState(dst []byte) ([]byte, error) {
	dst = append(binenc.AppendFixed64(dst, e.ID), binenc.Flags(e.Loss != nil, e.known, e.told))
	if e.Loss != nil {
		dst = appendLoss(dst, e.Loss)
	}
	return dst, nil
}

// RestoreState implements State.
func (e *Epoch) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	e.ID = r.Fixed64()
	flags := r.Byte()
	e.known, e.told = flags&2 != 0, flags&4 != 0
	if flags&1 != 0 {
		var err error
		if e.Loss, err = readLoss(&r); err != nil {
			return err
		}
	}
	return r.Close()
}

const maxLoss = 1 << 20

// appendLoss writes a loss as its record's JSON: losses are rare, and their fields may grow.
func appendLoss(dst []byte, l *record.Loss) []byte {
	b, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("pipeline: loss: %v", err)) // strings, numbers and times
	}
	return binenc.AppendBytes(dst, b)
}

func readLoss(r *binenc.Reader) (*record.Loss, error) {
	b := r.Bytes(maxLoss)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return record.Decode[record.Loss](b)
}

// asyncWriter writes outputs that need not wait for a checkpoint, in their order, while their task goes on.
type asyncWriter struct {
	write func([]Message) error

	mu           sync.Mutex
	changed      *sync.Cond
	queue        []Message
	bytes        int
	taken, wrote uint64 // messages queued and written since the start
	err          error  // the first one; nothing is written after it
	writing      bool
}

func newAsyncWriter(write func([]Message) error) *asyncWriter {
	p := &asyncWriter{write: write}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// put queues messages. If too many wait, it blocks until some are written, which bounds memory.
func (p *asyncWriter) put(ms []Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.bytes > maxBuffered {
		p.changed.Wait()
	}
	if p.err != nil || len(ms) == 0 {
		return p.err
	}
	for i := range ms {
		p.bytes += ms[i].Size()
	}
	p.queue = append(p.queue, ms...)
	p.taken += uint64(len(ms))
	if !p.writing {
		p.writing = true
		go p.run()
	}
	return nil
}

// run writes queued messages until none are left.
func (p *asyncWriter) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; p.err == nil && len(p.queue) > 0; p.changed.Broadcast() {
		ms := p.queue
		p.queue, p.bytes = nil, 0
		p.mu.Unlock()
		err := guardedWrite(p.write, ms)
		p.mu.Lock()
		if p.err = err; err == nil {
			p.wrote += uint64(len(ms))
		}
	}
	p.writing = false
}

func guardedWrite(write func([]Message) error, ms []Message) (err error) {
	defer Caught(&err)
	return write(ms)
}

// mark returns how many messages were queued so far; pass it to written.
func (p *asyncWriter) mark() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// written waits until all messages before a mark are written.
func (p *asyncWriter) written(mark uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.wrote < mark {
		p.changed.Wait()
	}
	return p.err
}

// Numbered is how far a shard has numbered its messages: its epoch and, by panes partition, the number of the last
// message. Seq is nil if it has sent none.
type Numbered struct {
	Epoch uint64
	Seq   []uint64
}

// NumberedBy reads the numbers from a checkpoint. The error wraps ErrCheckpoint if the checkpoint is damaged or not a
// shard's.
func NumberedBy(checkpoint []byte) (Numbered, error) {
	c, err := parseCheckpoint(checkpoint)
	if err != nil {
		return Numbered{}, err
	}
	l, o := Epoch{}, Outbox{}
	err = l.RestoreState(c.sections["life"].body)
	if body := c.sections["outbox"].body; err == nil && body != nil {
		err = o.restore(body)
	}
	if err != nil {
		return Numbered{}, fmt.Errorf("%w: not of a shard: %w", ErrCheckpoint, err)
	}
	return Numbered{l.ID, o.seq}, nil
}

// Branching returns the edits by which a shard, restored from a backup, goes on in another epoch although nothing is
// lost: from here on it numbers its messages anew. Messages that wait to be written keep their epoch and number.
func Branching() map[string]Edit {
	return map[string]Edit{
		"life": EditState(func(l *Epoch) { l.ID = NewEpoch()&^1 | l.ID&1 }),
		"outbox": func(body []byte) ([]byte, error) {
			o := Outbox{}
			if body == nil {
				return nil, nil
			}
			if err := o.restore(body); err != nil {
				return nil, err
			}
			clear(o.seq)
			return o.AppendState(nil)
		},
	}
}
