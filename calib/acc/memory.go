package acc

import "unsafe"

// Memory returns the bytes of memory that the set holds, which grow with the cells that its rows have touched
// (docs/format.md, Size). A set keeps them when it is reset.
func (s *Set) Memory() int {
	n := int(unsafe.Sizeof(*s))
	if s.Seen != nil {
		n += int(unsafe.Sizeof(*s.Seen)) + s.Seen.MSP.t.bytes() + s.Seen.Margin.t.bytes() + s.Seen.NegEnt.t.bytes()
	}
	if l := s.Labelled; l != nil {
		n += int(unsafe.Sizeof(*l)) + l.MSP.t.bytes() + l.Margin.t.bytes() + l.NegEnt.t.bytes() + l.Served.t.bytes()
		n += l.Soft.bytes() + l.ClassWise.bytes() + l.Sample.bytes()
	}
	if c := s.Classes; c != nil {
		n += int(unsafe.Sizeof(*c)) + c.cells.bytes() + c.wrong.bytes() + c.buffer.bytes()
	}
	return n
}

const word = 8 // bytes of an int64 or a float64

func (b *SoftBins) bytes() int {
	return int(unsafe.Sizeof(*b)) + word*(softFields*len(b.u)+len(b.u)+len(b.gauss))
}

func (c *ClassWise) bytes() int {
	return int(unsafe.Sizeof(*c)) + word*(cap(c.dense)+len(c.edges)) + c.t.bytes()
}

func (s *Sample) bytes() int {
	return int(unsafe.Sizeof(*s)) + int(unsafe.Sizeof(sampled{}))*cap(s.heap) + 4*cap(s.slab)
}
