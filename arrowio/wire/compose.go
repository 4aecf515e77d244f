package wire

import "encoding/binary"

// composer writes a flatbuffer from its root on: offsets between tables point forward only, so a table comes before
// what it refers to, and its offsets are set when that is placed.
type composer struct{ b []byte }

// slot is a scalar or an offset of a table: its size in bytes, 0 where it is absent.
type slot struct {
	size  int
	value uint64
}

// maxSlots is how many a table has at most.
const maxSlots = 6

func offsetSlot() slot { return slot{size: 4} }

// align pads with zeros until the next byte is at rest modulo n.
func (c *composer) align(n, rest int) {
	for len(c.b)%n != rest {
		c.b = append(c.b, 0)
	}
}

// table writes a table with its vtable before it and returns where each slot is, 0 where absent.
func (c *composer) table(slots ...slot) (pos int, at [maxSlots]int) {
	end := 4
	for _, size := range [...]int{8, 4, 2, 1} { // large ones first: no padding between them
		for i, s := range slots {
			if s.size == size {
				at[i] = end
				end += size
			}
		}
	}
	c.align(2, 0)
	vtable := len(c.b)
	c.u16(4 + 2*len(slots))
	c.u16(end)
	for i := range slots {
		c.u16(at[i])
	}
	c.align(8, 4) // so that 8-byte slots, which follow the 4 bytes of the vtable's offset, are aligned
	pos = len(c.b)
	c.b = append(c.b, make([]byte, end)...)
	binary.LittleEndian.PutUint32(c.b[pos:], uint32(pos-vtable))
	for i, s := range slots {
		if s.size == 0 {
			continue
		}
		at[i] += pos
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], s.value)
		copy(c.b[at[i]:], v[:s.size])
	}
	return pos, at
}

func (c *composer) u16(v int) { c.b = binary.LittleEndian.AppendUint16(c.b, uint16(v)) }

// link sets the offset at a position.
func (c *composer) link(at, to int) { binary.LittleEndian.PutUint32(c.b[at:], uint32(to-at)) }

// vector writes the length of a vector whose n elements of size bytes (4 or a multiple of 8) are zero, and returns
// where it is and where the elements begin.
func (c *composer) vector(n, size int) (pos, first int) {
	if size%8 == 0 {
		c.align(8, 4)
	} else {
		c.align(4, 0)
	}
	pos = len(c.b)
	c.b = binary.LittleEndian.AppendUint32(c.b, uint32(n))
	c.b = append(c.b, make([]byte, n*size)...)
	return pos, pos + 4
}

func (c *composer) text(s string) (pos int) {
	c.align(4, 0)
	pos = len(c.b)
	c.b = binary.LittleEndian.AppendUint32(c.b, uint32(len(s)))
	c.b = append(append(c.b, s...), 0)
	return pos
}

// message begins a flatbuffer with the Message table and returns where its offset to the header table is.
func (c *composer) message(h Header, body int) (header int) {
	c.b = append(c.b[:0], 0, 0, 0, 0)
	root, at := c.table(slot{2, version5}, slot{1, uint64(h)}, offsetSlot(), slot{8, uint64(body)})
	c.link(0, root)
	return at[2]
}

// appendMessage appends the encapsulated message of a Message flatbuffer.
func (c *composer) appendMessage(dst, body []byte) []byte {
	c.align(8, 0)
	dst = binary.LittleEndian.AppendUint32(dst, continuation)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.b)))
	return append(append(dst, c.b...), body...)
}

// AppendEnd appends the end-of-stream marker.
func AppendEnd(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, continuation), 0)
}

// AppendSchema appends schema message m as an encapsulated message with the fields that keep says, and after them,
// where time is set, with one called so of type timestamp[ns, UTC]. Everything else about the fields and the schema
// stays as it is in m, which ParseSchema has taken: new tables that refer to the old ones are put before those.
func AppendSchema(dst []byte, m Message, keep []bool, time string) []byte {
	old := fb{b: m.Meta}
	fields, n := old.vectorField(m.pos, 1, 4)
	meta := old.tableField(m.pos, 2)
	kept := 0
	for i := range n {
		if keep[i] {
			kept++
		}
	}
	c := &composer{}
	header := c.message(HeaderSchema, 0)
	slots := []slot{{}, offsetSlot(), {}} // endianness is little, the default
	if meta != 0 {
		slots[2] = offsetSlot()
	}
	if time != "" {
		kept++
	}
	pos, at := c.table(slots...)
	c.link(header, pos)
	vector, first := c.vector(kept, 4)
	c.link(at[1], vector)
	if time != "" {
		c.link(first+4*(kept-1), c.timeField(time))
	}
	c.align(8, 0)
	shift := len(c.b)
	for i := range n {
		if keep[i] {
			c.link(first, shift+old.indirect(fields+4*i))
			first += 4
		}
	}
	if meta != 0 {
		c.link(at[2], shift+meta)
	}
	c.b = append(c.b, m.Meta...)
	return c.appendMessage(dst, nil)
}

// timeField writes a Field table of type timestamp[ns, UTC] that is never null.
func (c *composer) timeField(name string) (pos int) {
	pos, at := c.table(offsetSlot(), slot{}, slot{1, uint64(Timestamp)}, offsetSlot(), slot{}, offsetSlot())
	c.link(at[0], c.text(name))
	const nanosecond = 3
	unit, zone := c.table(slot{2, nanosecond}, offsetSlot())
	c.link(at[3], unit)
	c.link(zone[1], c.text("UTC"))
	children, _ := c.vector(0, 4)
	c.link(at[5], children)
	return pos
}
