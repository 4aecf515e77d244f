package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The library believes the counts in a footer and the lengths in a page header, and asks for memory by them. The walker
// here reads the same bytes first, so that a count is never larger than what can stand behind it.

var errThrift = errors.New("the metadata is cut off or no Thrift")

// Types of the compact protocol of Thrift.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// thriftDepth is the deepest nesting of structs and lists; the format needs fewer than ten.
const thriftDepth = 32

// thrift reads values of the compact protocol.
type thrift struct{ b []byte }

func (t *thrift) byte() (byte, error) {
	if len(t.b) == 0 {
		return 0, errThrift
	}
	c := t.b[0]
	t.b = t.b[1:]
	return c, nil
}

func (t *thrift) varint() (uint64, error) {
	v, n := binary.Uvarint(t.b)
	if n <= 0 {
		return 0, errThrift
	}
	t.b = t.b[n:]
	return v, nil
}

// integer is a zigzag number.
func (t *thrift) integer() (int64, error) {
	v, err := t.varint()
	return int64(v>>1) ^ -int64(v&1), err
}

// list reads the head of a list. Every element has at least one byte.
func (t *thrift) list() (kind byte, n int, err error) {
	c, err := t.byte()
	if err != nil {
		return 0, 0, err
	}
	size := uint64(c >> 4)
	if size == 15 {
		if size, err = t.varint(); err != nil {
			return 0, 0, err
		}
	}
	if size > uint64(len(t.b)) {
		return 0, 0, fmt.Errorf("a list of %d entries in %d bytes: %w", size, len(t.b), errThrift)
	}
	return c & 15, int(size), nil
}

// fields calls f with every field of a struct; f reads the value.
func (t *thrift) fields(f func(id int64, kind byte) error) error {
	id := int64(0)
	for {
		c, err := t.byte()
		if err != nil || c == 0 {
			return err
		}
		if delta := int64(c >> 4); delta > 0 {
			id += delta
		} else if id, err = t.integer(); err != nil {
			return err
		}
		if err := f(id, c&15); err != nil {
			return err
		}
	}
}

// skip passes over a value.
func (t *thrift) skip(kind byte, depth int) error {
	if depth > thriftDepth {
		return fmt.Errorf("nested deeper than %d: %w", thriftDepth, errThrift)
	}
	switch kind {
	case thriftTrue, thriftFalse:
		return nil
	case thriftByte:
		return t.drop(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := t.varint()
		return err
	case thriftDouble:
		return t.drop(8)
	case thriftBinary:
		n, err := t.varint()
		if err != nil {
			return err
		}
		return t.drop(n)
	case thriftList, thriftSet:
		return t.skipList(depth)
	case thriftStruct:
		return t.fields(func(_ int64, kind byte) error { return t.skip(kind, depth+1) })
	}
	return fmt.Errorf("a value of type %d: %w", kind, errThrift) // no struct of Parquet has a map
}

func (t *thrift) drop(n uint64) error {
	if n > uint64(len(t.b)) {
		return errThrift
	}
	t.b = t.b[n:]
	return nil
}

func (t *thrift) skipList(depth int) error {
	kind, n, err := t.list()
	if kind == thriftTrue || kind == thriftFalse {
		kind = thriftByte // in a list, a boolean has a byte
	}
	for i := 0; i < n && err == nil; i++ {
		err = t.skip(kind, depth+1)
	}
	return err
}

// Fields of FileMetaData, SchemaElement and PageHeader that are looked at.
const (
	footerSchema    = 2
	elementChildren = 5
	pageInflated    = 2
	pageStored      = 3
	pageCRC         = 4
)

// Bounds of the schema.
const (
	maxElements = 1 << 16
	maxNesting  = 32
)

// checkFooter refuses a footer that claims more than it holds.
func checkFooter(b []byte) error {
	t := &thrift{b}
	return t.fields(func(id int64, kind byte) error {
		if id != footerSchema || kind != thriftList {
			return t.skip(kind, 0)
		}
		return t.schema()
	})
}

// schema checks that the elements are a tree of bounded depth: they stand in its depth-first order.
func (t *thrift) schema() error {
	kind, n, err := t.list()
	if err != nil {
		return err
	}
	if kind != thriftStruct || n > maxElements {
		return fmt.Errorf("a schema of %d elements, at most %d: %w", n, maxElements, errThrift)
	}
	var open []int64 // how many elements are missing, by depth
	for range n {
		children := int64(0)
		err := t.fields(func(id int64, kind byte) (err error) {
			if id == elementChildren && kind == thriftI32 {
				children, err = t.integer()
				return err
			}
			return t.skip(kind, 0)
		})
		if err != nil {
			return err
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if children < 0 || children > int64(n) || len(open) > maxNesting {
			return fmt.Errorf("a schema node with %d children at depth %d among %d elements", children, len(open), n)
		}
		if children > 0 {
			open = append(open, children)
		}
	}
	return nil
}

// pageHeader is what a page header claims.
type pageHeader struct {
	stored, inflated int64
	crc              uint32 // of the stored bytes
	checked          bool   // there is one
}

func pageHeaderOf(header []byte) (h pageHeader, err error) {
	t := &thrift{header}
	err = t.fields(func(id int64, kind byte) (err error) {
		switch {
		case id == pageInflated && kind == thriftI32:
			h.inflated, err = t.integer()
		case id == pageStored && kind == thriftI32:
			h.stored, err = t.integer()
		case id == pageCRC && kind == thriftI32:
			var crc int64
			crc, err = t.integer()
			h.crc, h.checked = uint32(crc), true
		default:
			err = t.skip(kind, 0)
		}
		return err
	})
	return h, err
}
