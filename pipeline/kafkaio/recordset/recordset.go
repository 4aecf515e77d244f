package recordset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/pipeline"
)

// Reasons of refusals. They become a metric label and a header, as those of the decoder.
const (
	TooLarge   = "too_large"  // a record or a batch takes more than the limits as it is in the log
	Inflates   = "inflates"   // it does so when it is decompressed
	Unreadable = "unreadable" // a batch whose checksum is right holds no records that can be read
)

// Limits bound what records may take.
type Limits struct {
	Record int   // bytes of a record with key and headers; a header counts headerCost more
	Batch  int64 // bytes that a batch inflates to
}

// What LimitsOf adds to the size of a fetch, which is no smaller than the largest message.
const (
	recordExtra = 1 << 20 // key and headers
	batchFactor = 8       // producers fill a batch to the size of the largest message at most
	batchLeast  = 16 << 20
)

// LimitsOf are the limits of a reader that asks for so many bytes at a time.
func LimitsOf(fetchMax int) Limits {
	return Limits{Record: fetchMax + recordExtra, Batch: max(batchFactor*int64(fetchMax), batchLeast)}
}

// Memory of a record and of a header beside their bytes.
const (
	recordCost = 160
	headerCost = 64
)

// Set is the record set of a response.
type Set struct {
	Data []byte
	// Size is how many bytes it had; more than Data has where the rest was too large to be read.
	Size    int
	Aborted []Transaction
	// Room returns n bytes of memory for what of records cannot lie in Data. After a call only the record that is being
	// read, and those before it, lie in what earlier calls returned. nil: make.
	Room func(n int) []byte
}

// Transaction is one that was aborted, from its first offset to its marker.
type Transaction struct {
	Producer int64
	First    int64
}

// Taker takes one record, which is valid until it returns, but for its bytes: they stay. Unread says that there is
// none, and why. cost is about how much memory it holds.
type Taker func(r *pipeline.Record, cost int) error

// Each calls take for the records from an offset on, in order; their values may lie in Data, which is of no use
// afterwards. It returns the offset after everything that was read, records that were left out included; -1 where
// nothing was.
func (s *Set) Each(from int64, limits Limits, take Taker) (after int64, err error) {
	w := &walk{from: from, limits: limits, take: take, aborted: newAborted(s.Aborted), after: -1,
		room: roomOf(s)}
	for rest := s.Data; len(rest) > magicAt; {
		//nolint:gosec // signed in the protocol
		size := batchHead + int64(int32(binary.BigEndian.Uint32(rest[sizeAt:])))
		if size <= magicAt {
			return w.after, fmt.Errorf("record batch of %d bytes", size)
		}
		if size > int64(len(rest)) {
			if w.after < 0 && s.Size > len(s.Data) {
				return w.tooLarge(rest, size)
			}
			break // a response may end in the middle of a batch
		}
		if err := w.batch(rest[:size]); err != nil {
			return w.after, err
		}
		rest = rest[size:]
	}
	return w.after, nil
}

// Where the fields that all formats share are.
const (
	sizeAt    = 8
	batchHead = 12 // offset and size, which the size does not count
	magicAt   = 16
)

// walk is the way through a record set.
type walk struct {
	from    int64
	limits  Limits
	take    Taker
	aborted *aborted
	after   int64
	at      pipeline.Record
	room    room
}

// room is memory for what cannot lie in the answer, a piece of it for many: who keeps one keeps so many.
type room struct {
	of    func(n int) []byte // nil: make
	piece int                // bytes of the next
	left  []byte
}

// What pieces have: those that are used again can be as large as the answer, and grow with what it inflates to.
const (
	together = 16 << 10
	lent     = 256 << 10
)

func roomOf(s *Set) room {
	r := room{of: s.Room, piece: together}
	if s.Room != nil {
		r.piece = min(max(len(s.Data), together), lent)
	}
	return r
}

// take returns n bytes, aligned.
func (r *room) take(n int) []byte {
	const word = 8
	whole := (n + word - 1) &^ (word - 1)
	if whole > len(r.left) {
		piece, of := r.piece, func(n int) []byte { return make([]byte, n) }
		if r.of != nil {
			of, r.piece = r.of, min(2*piece, lent)
		}
		if r.left = of(max(piece, whole)); piece <= whole {
			out := r.left
			r.left = nil
			return out[:n:n]
		}
	}
	out := r.left[:n:n]
	r.left = r.left[whole:]
	return out
}

func (w *walk) batch(b []byte) error {
	switch magic := b[magicAt]; magic {
	case 0, 1:
		return w.readMessage(b)
	case 2:
		return w.batchV2(b)
	default:
		return fmt.Errorf("record batch of format %d, known are 0 to 2", magic)
	}
}

// tooLarge refuses a batch of which only the beginning was read.
func (w *walk) tooLarge(b []byte, size int64) (after int64, err error) {
	last := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // signed in the protocol
	if b[magicAt] == 2 && len(b) >= headV2 {
		last = parseHead(b).last
	}
	err = w.refuse(w.from, last, TooLarge, fmt.Sprintf("the batch has %d bytes, allowed are %d: raise "+
		"kafka.fetch_max_bytes", size, w.limits.Batch))
	return max(w.after, last+1), err
}

// refuse hands out a refusal of the offsets from first to last that count.
func (w *walk) refuse(first, last int64, reason, why string) error {
	first = max(first, w.from)
	if last < first {
		return nil
	}
	text := fmt.Sprintf("offset %d: %s", last, why)
	if first < last {
		text = fmt.Sprintf("offsets %d to %d: %s", first, last, why)
	}
	refusal := &pipeline.Unread{Reason: reason, Detail: text, First: first}
	return w.take(&pipeline.Record{Offset: last, Unread: refusal}, recordCost)
}

// refuseFor refuses by an error of reading; what take returned is handed back.
func (w *walk) refuseFor(first, last int64, err error) error {
	var taken takeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return taken.error
	case errors.Is(err, errInflates):
		return w.refuse(first, last, Inflates, err.Error())
	}
	return w.refuse(first, last, Unreadable, err.Error())
}

// takeError is an error that take returned: it is no fault of the batch.
type takeError struct{ error }

// aborted knows which transactions of a response were aborted: from its first offset to its marker, the records of
// a producer do not count.
type aborted struct {
	coming []Transaction  // by first offset
	open   map[int64]bool // by producer
}

func newAborted(ts []Transaction) *aborted {
	coming := slices.Clone(ts)
	slices.SortFunc(coming, func(a, b Transaction) int { return cmp.Compare(a.First, b.First) })
	return &aborted{coming: coming, open: map[int64]bool{}}
}

// covers reports whether a transactional batch at an offset was aborted.
func (a *aborted) covers(producer, offset int64) bool {
	for len(a.coming) > 0 && a.coming[0].First <= offset {
		a.open[a.coming[0].Producer] = true
		a.coming = a.coming[1:]
	}
	return a.open[producer]
}
