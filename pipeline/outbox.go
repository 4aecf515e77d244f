package pipeline

import (
	"fmt"

	"github.com/plumbline/plumbline/internal/binenc"
)

// maxIncrement is about how many bytes of cells go into one pane message.
const maxIncrement = 512 << 10

// Outbox holds the pane messages that a shard has decided on but may not show yet. They are part of the
// checkpoint; only when that is durable are they written. So what the model tasks have seen is never decided
// anew after a crash, although the interleaving of the two inputs, and with it which rows came late, may differ.
//
// Invariant: messages of one epoch and panes partition carry consecutive Seq, from 1.
type Outbox struct {
	shard, of int
	life      *Life
	next      []int64 // the shard's own: the first offset not yet taken, by input
	length    int64
	seq       []uint64
	idle      bool // what the last punctuation said
	pending   []Message
}

// NewOutbox returns the empty outbox of one shard for a panes topic of so many partitions.
func NewOutbox(shard, of int, paneLength int64, partitions int) *Outbox {
	return &Outbox{shard: shard, of: of, life: &Life{}, length: paneLength, seq: make([]uint64, partitions)}
}

// Increment adds the cells of one label pane of one model, split into messages of a bounded size.
func (o *Outbox) Increment(model string, labelPane int64, late bool, cells []Cell) {
	p := PartitionOf([]byte(model), len(o.seq))
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

// Punctuate tells every panes partition that the label panes before closed are complete, and whether the shard has
// nothing more to read.
func (o *Outbox) Punctuate(closed int64, idle bool) {
	o.idle = idle
	loss := o.life.tell()
	for p := range o.seq {
		o.put(p, nil, &PaneMessage{Punctuation: true, Closed: closed, Idle: idle, Next: o.next, Loss: loss})
	}
}

func (o *Outbox) put(p int, key []byte, m *PaneMessage) {
	o.seq[p]++
	m.Shard, m.Of, m.Epoch, m.Seq, m.Length = o.shard, o.of, o.life.Epoch, o.seq[p], o.length
	o.pending = append(o.pending, Message{Stream: StreamPanes, Partition: int32(p), Key: key,
		Value: AppendPane(nil, m)})
}

// Pending returns the messages to be written after the next checkpoint.
func (o *Outbox) Pending() []Message { return o.pending }

// Clear forgets the pending messages: they have been written.
func (o *Outbox) Clear() { o.pending = nil }

// AppendState appends the sequence numbers and the pending messages.
func (o *Outbox) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(o.seq)))
	for _, s := range o.seq {
		dst = binenc.AppendUvarint(dst, s)
	}
	idle := byte(0)
	if o.idle {
		idle = 1
	}
	dst = append(dst, idle)
	dst = binenc.AppendUvarint(dst, uint64(len(o.pending)))
	for _, m := range o.pending {
		dst = binenc.AppendUvarint(dst, uint64(m.Partition))
		dst = binenc.AppendBytes(dst, m.Key)
		dst = binenc.AppendBytes(dst, m.Value)
	}
	return dst, nil
}

// RestoreState reads what AppendState wrote. A panes topic of another size is refused: sequence numbers,
// and the models' places, are by partition.
func (o *Outbox) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	n := r.Count(1, 1<<20)
	if r.Err() == nil && n != len(o.seq) {
		return fmt.Errorf("the checkpoint is of a panes topic with %d partitions, it has %d now", n, len(o.seq))
	}
	for i := range n {
		o.seq[i] = r.Uvarint()
	}
	o.idle = r.Byte() == 1
	k := r.Count(3, 1<<24)
	o.pending = nil
	for range k {
		m := Message{Stream: StreamPanes, Partition: int32(r.Uvarint())}
		m.Key = append([]byte(nil), r.Bytes(maxPaneName)...)
		m.Value = append([]byte(nil), r.Bytes(maxPaneBytes)...)
		if r.Err() != nil {
			break
		}
		o.pending = append(o.pending, m)
	}
	return r.Err()
}

func (o *Outbox) bytes() int {
	n := 0
	for i := range o.pending {
		n += len(o.pending[i].Value)
	}
	return n
}
