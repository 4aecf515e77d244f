package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// ErrPane means that bytes on the panes topic are not a pane message of a known version.
var ErrPane = errors.New("not a pane message")

const (
	paneMagic = "PLBP"
	// The byte behind the magic is the kind of the message.
	kindPane  = 1
	kindOrder = 2
	// Limits of what a pane message may claim; a Kafka message is far below them.
	maxPaneName   = 1 << 12
	maxPaneCells  = 1 << 20
	maxPaneBytes  = 1 << 28
	maxPaneInputs = 16
	flagLoss      = 8
	flagApart     = 16
	maxShards     = 1 << 16 // Kafka's practical bound on partitions is far below
)

// PaneMessage is what shards send to model tasks: an increment (some cells of one label pane of one model) or a
// punctuation (the shard has closed every label pane before Closed). [AppendPane] has the bytes.
type PaneMessage struct {
	Shard, Of int
	// Epoch names the sender's state; a shard that begins with an empty state draws another.
	Epoch uint64
	// Seq counts the messages of this shard and epoch on this panes partition from 1: a repeat is recognised by it.
	Seq uint64
	// Length is the pane length in nanoseconds.
	Length int64
	// Punctuation: Closed is the index of the first label pane still open. Idle says that the shard's inputs are
	// exhausted: it has sent all that it has, and does not hold back the others until its next message.
	Punctuation bool
	Closed      int64
	Idle        bool
	// Punctuations only: per input, the first offset not covered by messages so far.
	Next []int64
	// Loss is set in the first punctuation of an epoch that a person began: what was lost with the state before.
	Loss *record.Loss
	// Models lists the models of this panes partition whose own Closed differs from the shard's.
	Models []ModelClosed
	// Increment: the label pane, and whether its rows came after the pane had been emitted.
	Model     string
	LabelPane int64
	Late      bool
	Cells     []Cell
}

// Cell is one (version, slice, prediction pane) part of an increment; Set is an encoded acc.Set.
type Cell struct {
	Version, Slice string
	K              int
	PredictionPane int64
	Set            []byte
}

// AppendPane appends the encoding of m to dst, in the primitives of docs/format.md:
//
//	"PLBP", u8 1            magic and kind
//	u8 flags                1 punctuation; 2 late, rows after their label pane was emitted; 4 idle; 8 loss; 16 apart
//	uvarint shard, of       shard < of, the number of shards
//	fixed64 epoch           drawn when the shard begins with an empty state; 0 in a replay
//	uvarint seq ≥ 1         messages of this shard and epoch on this panes partition, without a gap
//	uvarint length ≥ 1      pane length, ns
//
// A punctuation goes on with
//
//	varint closed           the first label pane still open
//	uvarint n, n varint     by input the first offset of which nothing is in this message or an earlier one
//	bytes loss              with flag 8: JSON, as in the decisions topic
//	uvarint n, n models     with flag 16: string name, varint first open pane; 2⁶³ − 1 = forgotten
//
// and an increment with
//
//	string model, varint label pane
//	uvarint n, n cells      string version, string slice, uvarint K, varint prediction pane, bytes set; ascending by
//	                        version, slice and prediction pane. A slice is "" (all rows), column=value or
//	                        column=~other, a set an encoded acc.Set.
func AppendPane(dst []byte, m *PaneMessage) []byte {
	dst = slices.Grow(dst, paneSize(m))
	dst = append(dst, paneMagic...)
	dst = append(dst, kindPane)
	var flags byte
	if m.Punctuation {
		flags |= 1
	}
	if m.Late {
		flags |= 2
	}
	if m.Idle {
		flags |= 4
	}
	if m.Loss != nil {
		flags |= flagLoss
	}
	if len(m.Models) > 0 {
		flags |= flagApart
	}
	dst = append(dst, flags)
	dst = binenc.AppendUvarint(dst, uint64(m.Shard))
	dst = binenc.AppendUvarint(dst, uint64(m.Of))
	dst = binenc.AppendFixed64(dst, m.Epoch)
	dst = binenc.AppendUvarint(dst, m.Seq)
	dst = binenc.AppendUvarint(dst, uint64(m.Length))
	if m.Punctuation {
		return appendApart(appendPunctuation(dst, m), m.Models)
	}
	dst = binenc.AppendString(dst, m.Model)
	dst = binenc.AppendVarint(dst, m.LabelPane)
	dst = binenc.AppendUvarint(dst, uint64(len(m.Cells)))
	for i := range m.Cells {
		c := &m.Cells[i]
		dst = binenc.AppendString(dst, c.Version)
		dst = binenc.AppendString(dst, c.Slice)
		dst = binenc.AppendUvarint(dst, uint64(c.K))
		dst = binenc.AppendVarint(dst, c.PredictionPane)
		dst = binenc.AppendBytes(dst, c.Set)
	}
	return dst
}

func appendPunctuation(dst []byte, m *PaneMessage) []byte {
	dst = binenc.AppendVarint(dst, m.Closed)
	dst = binenc.AppendUvarint(dst, uint64(len(m.Next)))
	for _, next := range m.Next {
		dst = binenc.AppendVarint(dst, next)
	}
	if m.Loss != nil {
		dst = appendLoss(dst, m.Loss)
	}
	return dst
}

// appendApart appends the models with a Closed of their own; nothing if there are none.
func appendApart(dst []byte, models []ModelClosed) []byte {
	if len(models) == 0 {
		return dst
	}
	dst = binenc.AppendUvarint(dst, uint64(len(models)))
	for _, c := range models {
		dst = binenc.AppendVarint(binenc.AppendString(dst, c.Model), c.Closed)
	}
	return dst
}

func decodePunctuation(r *binenc.Reader, m *PaneMessage, loss bool) error {
	m.Closed = r.Varint()
	for range r.Count(1, maxPaneInputs) {
		m.Next = append(m.Next, r.Varint())
	}
	if !loss {
		return nil
	}
	var err error
	m.Loss, err = readLoss(r)
	return err
}

func decodeApart(r *binenc.Reader, m *PaneMessage) {
	for range r.Count(2, maxPaneCells) {
		m.Models = append(m.Models, ModelClosed{r.String(maxPaneName), r.Varint()})
	}
}

// paneSize estimates the encoded length of m.
func paneSize(m *PaneMessage) int {
	n := 64 + len(m.Model)
	for i := range m.Cells {
		c := &m.Cells[i]
		n += 16 + len(c.Version) + len(c.Slice) + len(c.Set)
	}
	return n
}

// DecodePane reads a pane message; Cells' Set share b's memory. The error wraps ErrPane.
func DecodePane(b []byte) (*PaneMessage, error) {
	if len(b) < 6 || string(b[:4]) != paneMagic {
		return nil, fmt.Errorf("%w: no %q at the start of %d bytes", ErrPane, paneMagic, len(b))
	}
	if b[4] != kindPane {
		return nil, fmt.Errorf("%w: kind %d, want %d", ErrPane, b[4], kindPane)
	}
	m := &PaneMessage{Punctuation: b[5]&1 != 0, Late: b[5]&2 != 0, Idle: b[5]&4 != 0}
	r := binenc.NewReader(b[6:])
	m.Shard, m.Of = int(r.Uvarint()), int(r.Uvarint())
	m.Epoch = r.Fixed64()
	m.Seq = r.Uvarint()
	m.Length = int64(r.Uvarint())
	if m.Punctuation {
		if err := decodePunctuation(&r, m, b[5]&flagLoss != 0); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPane, err)
		}
		if b[5]&flagApart != 0 {
			decodeApart(&r, m)
		}
	} else {
		m.Model = r.String(maxPaneName)
		m.LabelPane = r.Varint()
		decodeCells(&r, m)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPane, err)
	}
	if r.Len() != 0 || m.Of <= 0 || m.Of > maxShards || m.Shard < 0 || m.Shard >= m.Of || m.Length <= 0 || m.Seq == 0 {
		return nil, fmt.Errorf("%w: shard %d of %d, seq %d, pane length %d, %d bytes left over", ErrPane, m.Shard,
			m.Of, m.Seq, m.Length, r.Len())
	}
	return m, nil
}

func decodeCells(r *binenc.Reader, m *PaneMessage) {
	n := r.Count(5, maxPaneCells)
	m.Cells = make([]Cell, 0, n)
	for range n {
		c := Cell{Version: r.String(maxPaneName), Slice: r.String(maxPaneName), K: int(r.Uvarint())}
		c.PredictionPane = r.Varint()
		c.Set = r.Bytes(maxPaneBytes)
		if r.Err() != nil {
			return
		}
		m.Cells = append(m.Cells, c)
	}
}
