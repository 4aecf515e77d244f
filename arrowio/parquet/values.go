package parquet

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/parquet"
)

// buffer is values as they lie in Arrow's memory: of one width, or bytes with the offsets of their ends.
type buffer struct {
	width int // 0: of any length
	data  []byte
	ends  []int32
	file  *File
}

func (b *buffer) len() int {
	if b.width == 0 {
		return len(b.ends)
	}
	return len(b.data) / b.width
}

// text appends a value of any length.
func (b *buffer) text(v []byte) error {
	if err := b.file.decode(int64(len(v) + 4)); err != nil {
		return err
	}
	if len(b.data)+len(v) > math.MaxInt32 {
		return fmt.Errorf("more than %d bytes of text in %d rows", math.MaxInt32, len(b.ends))
	}
	b.data = append(b.data, v...)
	b.ends = append(b.ends, int32(len(b.data)))
	return nil
}

// fixed appends values of the buffer's width.
func (b *buffer) fixed(v []byte) error {
	if err := b.file.decode(int64(len(v))); err != nil {
		return err
	}
	b.data = append(b.data, v...)
	return nil
}

// integer appends a number of the buffer's width, 4 or 8 bytes.
func (b *buffer) integer(v int64) error {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], uint64(v))
	return b.fixed(raw[:b.width])
}

// at is value i.
func (b *buffer) at(i int) []byte {
	if b.width > 0 {
		return b.data[i*b.width : (i+1)*b.width]
	}
	from := int32(0)
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.data[from:b.ends[i]]
}

// null appends the place of a value that is not there.
func (b *buffer) null() error {
	if b.width == 0 {
		return b.text(nil)
	}
	var zero [16]byte
	for left := b.width; left > 0; left -= len(zero) {
		if err := b.fixed(zero[:min(left, len(zero))]); err != nil {
			return err
		}
	}
	return nil
}

// values are those of a page that are not null.
type values interface {
	// append appends the next n to out.
	append(out *buffer, n int) error
}

// byteStreamSplit is the encoding BYTE_STREAM_SPLIT, which the library does not name.
const byteStreamSplit parquet.Encoding = 9

// newValues begins to read the values of a page. dict are those of the dictionary; width is that of a value.
func newValues(e parquet.Encoding, b []byte, kind parquet.Type, out, dict *buffer) (values, error) {
	switch e {
	case parquet.Encodings.Plain:
		if kind == parquet.Types.Boolean {
			return &packedBools{b: b}, nil
		}
		return &plain{b}, nil
	case parquet.Encodings.PlainDict, parquet.Encodings.RLEDict:
		return newIndexed(b, dict)
	case parquet.Encodings.RLE:
		if kind != parquet.Types.Boolean {
			break
		}
		b, _, err := prefixed(b)
		if err != nil {
			return nil, err
		}
		h, err := newHybrid(b, 1)
		return &runBools{h}, err
	case byteStreamSplit:
		if out.width == 0 || len(b)%out.width != 0 {
			break
		}
		return &split{b: b, n: len(b) / out.width}, nil
	}
	return newDeltas(e, b, kind, out.file)
}

func newDeltas(e parquet.Encoding, b []byte, kind parquet.Type, f *File) (values, error) {
	whole := kind == parquet.Types.Int32 || kind == parquet.Types.Int64
	text := kind == parquet.Types.ByteArray || kind == parquet.Types.FixedLenByteArray
	switch {
	case e == parquet.Encodings.DeltaBinaryPacked && whole:
		d, err := newDelta(b)
		return deltaInts{d}, err
	case e == parquet.Encodings.DeltaLengthByteArray && kind == parquet.Types.ByteArray:
		return newDeltaTexts(b, f)
	case e == parquet.Encodings.DeltaByteArray && text:
		return newPrefixedTexts(b, f)
	}
	return nil, fmt.Errorf("values of type %s in the encoding %s are not read", kind, e)
}

// plain are the values one after the other.
type plain struct{ b []byte }

func (p *plain) append(out *buffer, n int) error {
	if out.width > 0 {
		if n > len(p.b)/out.width {
			return errShort
		}
		v := p.b[:n*out.width]
		p.b = p.b[len(v):]
		return out.fixed(v)
	}
	for range n {
		v, rest, err := prefixed(p.b)
		if err == nil {
			err = out.text(v)
		}
		if err != nil {
			return err
		}
		p.b = rest
	}
	return nil
}

// packedBools are bits; in the buffer a boolean has a byte.
type packedBools struct {
	b   []byte
	bit int
}

func (p *packedBools) append(out *buffer, n int) error {
	if n > len(p.b)*8-p.bit {
		return errShort
	}
	for range n {
		if err := out.fixed([]byte{byte(bitsAt(p.b, p.bit, 1))}); err != nil {
			return err
		}
		p.bit++
	}
	return nil
}

type runBools struct{ h hybrid }

func (r *runBools) append(out *buffer, n int) error {
	for range n {
		v, err := r.h.next()
		if err == nil {
			err = out.fixed([]byte{byte(v)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// indexed are indices of a dictionary.
type indexed struct {
	h    hybrid
	dict *buffer
}

func newIndexed(b []byte, dict *buffer) (values, error) {
	if dict == nil {
		return nil, fmt.Errorf("a page of indices without a dictionary before it")
	}
	if len(b) == 0 { // a page of nulls
		return &indexed{dict: dict}, nil
	}
	h, err := newHybrid(b[1:], int(b[0]))
	return &indexed{h, dict}, err
}

func (x *indexed) append(out *buffer, n int) error {
	for range n {
		i, err := x.h.next()
		if err != nil {
			return err
		}
		if int64(i) >= int64(x.dict.len()) {
			return fmt.Errorf("index %d in a dictionary of %d", i, x.dict.len())
		}
		if out.width > 0 {
			err = out.fixed(x.dict.at(int(i)))
		} else {
			err = out.text(x.dict.at(int(i)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// split are the first bytes of all values, then the second ones, and so on.
type split struct {
	b     []byte
	n, at int
}

func (s *split) append(out *buffer, n int) error {
	if n > s.n-s.at {
		return errShort
	}
	if err := out.file.decode(int64(n) * int64(out.width)); err != nil {
		return err
	}
	for i := s.at; i < s.at+n; i++ {
		for j := range out.width {
			out.data = append(out.data, s.b[j*s.n+i])
		}
	}
	s.at += n
	return nil
}

type deltaInts struct{ d *delta }

func (i deltaInts) append(out *buffer, n int) error {
	for range n {
		v, err := i.d.next()
		if err == nil {
			err = out.integer(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passDelta reads all integers at the start of b; how many there are is the page's claim.
func passDelta(b []byte, f *File) (*delta, error) {
	d, err := newDelta(b)
	if err == nil {
		err = f.decode(int64(d.count) * 4)
	}
	for err == nil && d.count > 0 {
		_, err = d.next()
	}
	return d, err
}

// deltaTexts are the lengths of all values, then their bytes.
type deltaTexts struct {
	lengths *delta
	b       []byte
}

// newDeltaTexts reads the lengths twice: first to find where the bytes begin.
func newDeltaTexts(b []byte, f *File) (*deltaTexts, error) {
	d, err := passDelta(b, f)
	if err != nil {
		return nil, err
	}
	lengths, err := newDelta(b)
	return &deltaTexts{lengths, d.rest()}, err
}

// next views the next value.
func (t *deltaTexts) next() ([]byte, error) {
	n, err := t.lengths.next()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(t.b)) {
		return nil, errShort
	}
	v := t.b[:n]
	t.b = t.b[n:]
	return v, nil
}

func (t *deltaTexts) append(out *buffer, n int) error {
	for range n {
		v, err := t.next()
		if err == nil {
			err = out.text(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prefixedTexts have how many bytes each shares with the one before, and the others.
type prefixedTexts struct {
	shared *delta
	ends   *deltaTexts
	last   []byte
}

func newPrefixedTexts(b []byte, f *File) (*prefixedTexts, error) {
	d, err := passDelta(b, f)
	if err != nil {
		return nil, err
	}
	ends, err := newDeltaTexts(d.rest(), f)
	if err != nil {
		return nil, err
	}
	shared, err := newDelta(b)
	return &prefixedTexts{shared: shared, ends: ends}, err
}

func (t *prefixedTexts) append(out *buffer, n int) error {
	for range n {
		shared, err := t.shared.next()
		if err != nil {
			return err
		}
		end, err := t.ends.next()
		if err != nil {
			return err
		}
		if shared < 0 || shared > int64(len(t.last)) {
			return errShort
		}
		t.last = append(t.last[:shared], end...)
		if out.width == 0 {
			err = out.text(t.last)
		} else if err = errShort; len(t.last) == out.width {
			err = out.fixed(t.last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
