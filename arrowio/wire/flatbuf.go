package wire

import "encoding/binary"

// fb reads a flatbuffer without trusting it: every access is checked, and the first one outside sets bad,
// after which all reads give zero. Offsets between tables only point forward, so walks end.
type fb struct {
	b   []byte
	bad bool
}

// at returns n bytes at pos, or nil (and sets bad) where they are not all inside.
func (f *fb) at(pos, n int) []byte {
	if f.bad || pos < 0 || n < 0 || pos > len(f.b)-n {
		f.bad = true
		return nil
	}
	return f.b[pos : pos+n : pos+n]
}

func (f *fb) u8(pos int) uint8 {
	if s := f.at(pos, 1); s != nil {
		return s[0]
	}
	return 0
}

func (f *fb) u16(pos int) uint16 {
	if s := f.at(pos, 2); s != nil {
		return binary.LittleEndian.Uint16(s)
	}
	return 0
}

func (f *fb) u32(pos int) uint32 {
	if s := f.at(pos, 4); s != nil {
		return binary.LittleEndian.Uint32(s)
	}
	return 0
}

func (f *fb) i64(pos int) int64 {
	if s := f.at(pos, 8); s != nil {
		return int64(binary.LittleEndian.Uint64(s))
	}
	return 0
}

// root is the position of the root table.
func (f *fb) root() int { return f.indirect(0) }

// indirect follows the unsigned offset at pos. An offset of zero would point to itself and is refused.
func (f *fb) indirect(pos int) int {
	off := int64(f.u32(pos))
	to := int64(pos) + off
	if off == 0 || to > int64(len(f.b)) {
		f.bad = true
		return 0
	}
	return int(to)
}

// field is the position of the slot-th field of the table at pos, or 0 where the table lacks it.
func (f *fb) field(pos, slot int) int {
	vt := pos - int(int32(f.u32(pos)))
	size := int(f.u16(vt))
	if f.bad || size < 4 || size&1 != 0 || f.at(vt, size) == nil {
		f.bad = true
		return 0
	}
	entry := 4 + 2*slot
	if entry+2 > size {
		return 0
	}
	off := int(f.u16(vt + entry))
	if off == 0 || f.at(pos, off) == nil {
		return 0
	}
	return pos + off
}

// int16Field, byteField, … read a scalar field with its default.
func (f *fb) int16Field(pos, slot int, def int16) int16 {
	if p := f.field(pos, slot); p != 0 {
		return int16(f.u16(p))
	}
	return def
}

func (f *fb) byteField(pos, slot int) uint8 {
	if p := f.field(pos, slot); p != 0 {
		return f.u8(p)
	}
	return 0
}

// boolField refuses what is neither 0 nor 1: readers differ about it.
func (f *fb) boolField(pos, slot int) bool {
	v := f.byteField(pos, slot)
	if v > 1 {
		f.bad = true
	}
	return v == 1
}

func (f *fb) int32Field(pos, slot int) int32 {
	if p := f.field(pos, slot); p != 0 {
		return int32(f.u32(p))
	}
	return 0
}

func (f *fb) int64Field(pos, slot int) int64 {
	if p := f.field(pos, slot); p != 0 {
		return f.i64(p)
	}
	return 0
}

// tableField is the position of the table that a field refers to, or 0 where absent.
func (f *fb) tableField(pos, slot int) int {
	if p := f.field(pos, slot); p != 0 {
		return f.indirect(p)
	}
	return 0
}

// vectorField is the start and the length of a vector of elements of size bytes; (0, 0) where absent.
func (f *fb) vectorField(pos, slot, size int) (start, n int) {
	p := f.field(pos, slot)
	if p == 0 {
		return 0, 0
	}
	p = f.indirect(p)
	count := int64(f.u32(p))
	if f.bad || count*int64(size) > int64(len(f.b)-p-4) {
		f.bad = true
		return 0, 0
	}
	return p + 4, int(count)
}

// textField is the bytes of a string field, without copying.
func (f *fb) textField(pos, slot int) []byte {
	start, n := f.vectorField(pos, slot, 1)
	if n == 0 {
		return nil
	}
	return f.at(start, n)
}
