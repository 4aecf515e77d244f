package arrowio

import (
	"encoding/binary"
	"fmt"
)

// spot is a value in the metadata or the body of a message, where and of what meaning. Mutations set it to something
// else of its size, or to what another spot of the same meaning holds.
type spot struct {
	at, size int
	meaning  meaning
}

type meaning uint8

// The meanings of spots.
const (
	framing     meaning = iota // continuation marker and metadata length
	version                    // metadata version, endianness
	kindOfThing                // header type, column type, codec, method
	bodyLength                 // of a message
	tableOffset                // relative offsets between tables
	vtable                     // entries of vtables: which fields a table has
	vectorLen                  // of vectors and strings
	typeParam                  // bit widths, units, list sizes, signedness
	rowCount                   // of batches and field nodes
	nullCount
	bufOffset
	bufLength
	dictID
	nameText    // names and metadata
	prefix      // declared length of a compressed buffer
	bodyBuffer  // first and last words of a buffer: bitmaps, offsets, indices, values
	allMeanings // number of them
)

// piece is one encapsulated message of a stream, its spots relative to its first byte.
type piece struct {
	raw   []byte
	spots []spot
	meta  int // where the metadata begins
	body  int // where the body begins
}

// pieces takes a valid stream apart. It is written from Message.fbs and Schema.fbs, trusts its input, and shares
// nothing with package wire, which it helps to test.
func pieces(stream []byte) []piece {
	var out []piece
	for at := 0; at < len(stream); {
		size := int(binary.LittleEndian.Uint32(stream[at+4:]))
		w := walker{piece: piece{meta: 8, body: 8 + size}}
		w.add(0, 4, framing)
		w.add(4, 4, framing)
		if size == 0 {
			w.raw = stream[at : at+8]
			return append(out, w.piece)
		}
		w.raw = stream[at:]
		n := 8 + size + w.message()
		w.raw = stream[at : at+n]
		out = append(out, w.piece)
		at += n
	}
	return out
}

type walker struct{ piece }

func (w *walker) add(at, size int, m meaning) { w.spots = append(w.spots, spot{at, size, m}) }

func (w *walker) u16(at int) int { return int(binary.LittleEndian.Uint16(w.raw[at:])) }
func (w *walker) i32(at int) int { return int(int32(binary.LittleEndian.Uint32(w.raw[at:]))) }
func (w *walker) i64(at int) int { return int(binary.LittleEndian.Uint64(w.raw[at:])) }

// follow notes the offset at and returns where it leads.
func (w *walker) follow(at int) int {
	w.add(at, 4, tableOffset)
	return at + w.i32(at)
}

// table notes the vtable of the table at pos; field finds its fields.
func (w *walker) table(pos int) int {
	w.add(pos, 4, tableOffset)
	vt := pos - w.i32(pos)
	for at := vt; at < vt+w.u16(vt); at += 2 {
		w.add(at, 2, vtable)
	}
	return pos
}

// field is where the slot-th field of the table is; 0 where absent.
func (w *walker) field(pos, slot int) int {
	vt := pos - w.i32(pos)
	if 4+2*slot+2 > w.u16(vt) || w.u16(vt+4+2*slot) == 0 {
		return 0
	}
	return pos + w.u16(vt+4+2*slot)
}

// scalar notes a scalar field and says where it is, or 0.
func (w *walker) scalar(pos, slot, size int, m meaning) int {
	at := w.field(pos, slot)
	if at != 0 {
		w.add(at, size, m)
	}
	return at
}

// child notes a table field and returns its table, or 0.
func (w *walker) child(pos, slot int) int {
	if at := w.field(pos, slot); at != 0 {
		return w.table(w.follow(at))
	}
	return 0
}

// vector notes a vector field and returns its first element and length.
func (w *walker) vector(pos, slot int) (first, n int) {
	at := w.field(pos, slot)
	if at == 0 {
		return 0, 0
	}
	at = w.follow(at)
	w.add(at, 4, vectorLen)
	return at + 4, w.i32(at)
}

func (w *walker) str(pos, slot int) {
	if first, n := w.vector(pos, slot); n > 0 {
		w.add(first, min(n, 8), nameText)
	}
}

// message walks the Message table and returns the length of the body.
func (w *walker) message() int {
	root := w.table(w.follow(w.meta))
	w.scalar(root, 0, 2, version)
	kind := w.raw[w.scalar(root, 1, 1, kindOfThing)]
	size := 0
	if at := w.scalar(root, 3, 8, bodyLength); at != 0 {
		size = w.i64(at)
	}
	header := w.child(root, 2)
	switch kind {
	case 1:
		w.schema(header)
	case 2:
		w.scalar(header, 0, 8, dictID)
		w.scalar(header, 2, 1, kindOfThing)
		w.batch(w.child(header, 1))
	case 3:
		w.batch(header)
	default:
		panic(fmt.Sprintf("message of kind %d", kind))
	}
	return size
}

func (w *walker) schema(pos int) {
	w.scalar(pos, 0, 2, version)
	w.fields(pos, 1)
	first, n := w.vector(pos, 2)
	for i := range n {
		kv := w.table(w.follow(first + 4*i))
		w.str(kv, 0)
		w.str(kv, 1)
	}
}

func (w *walker) fields(pos, slot int) {
	first, n := w.vector(pos, slot)
	for i := range n {
		f := w.table(w.follow(first + 4*i))
		w.str(f, 0)
		w.scalar(f, 1, 1, typeParam)
		w.scalar(f, 2, 1, kindOfThing)
		w.parameters(w.child(f, 3))
		if d := w.child(f, 4); d != 0 {
			w.scalar(d, 0, 8, dictID)
			w.parameters(w.child(d, 1))
		}
		w.fields(f, 5)
	}
}

// parameters notes the fields of a type table: all are of at most four bytes.
func (w *walker) parameters(pos int) {
	if pos == 0 {
		return
	}
	for slot := range 2 {
		if at := w.field(pos, slot); at != 0 {
			w.add(at, 1, typeParam)
		}
	}
}

func (w *walker) batch(pos int) {
	w.scalar(pos, 0, 8, rowCount)
	nodes, n := w.vector(pos, 1)
	for i := range n {
		w.add(nodes+16*i, 8, rowCount)
		w.add(nodes+16*i+8, 8, nullCount)
	}
	compressed := w.child(pos, 3)
	if compressed != 0 {
		w.scalar(compressed, 0, 1, kindOfThing)
		w.scalar(compressed, 1, 1, kindOfThing)
	}
	if first, n := w.vector(pos, 4); n > 0 {
		w.add(first, 8, rowCount)
	}
	buffers, n := w.vector(pos, 2)
	for i := range n {
		w.add(buffers+16*i, 8, bufOffset)
		w.add(buffers+16*i+8, 8, bufLength)
		at, size := w.body+w.i64(buffers+16*i), w.i64(buffers+16*i+8)
		if compressed != 0 && size >= 8 {
			w.add(at, 8, prefix)
			at, size = at+8, size-8
		}
		if size > 0 {
			w.add(at, min(size, 8), bodyBuffer)
			w.add(at+size-min(size, 8), min(size, 8), bodyBuffer)
			w.add(at+size/2, 1, bodyBuffer)
		}
	}
}
