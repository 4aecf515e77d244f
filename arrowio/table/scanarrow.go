package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// scanArrow reads an Arrow file or stream that may be hostile, with the reader of messages. The record batches of a
// file are taken in the order in which they lie there, which all writers make that of the footer.
func scanArrow(f *os.File, isFile bool, part func(*FeaturePart) error) (info FeatureInfo, err error) {
	st, err := f.Stat()
	if err != nil {
		return info, err
	}
	data, unmap, err := mapFile(f, st.Size())
	if err != nil {
		return info, err
	}
	defer unmap()
	defer catchFaults(&err)()
	s := arrowScan{data: data, part: part, inflater: &wire.Inflater{}}
	if err := s.run(isFile); err != nil {
		return info, err
	}
	return s.info, nil
}

// arrowScan walks the messages of a file.
type arrowScan struct {
	data     []byte // the whole file
	part     func(*FeaturePart) error
	inflater *wire.Inflater
	info     FeatureInfo

	schema                             *wire.Schema
	want                               []bool
	features, label, ts, weight, id, k int // fields; -1 = none
	classes                            int
	rows                               int
	crc                                uint32 // of the record batches so far
}

// maxExpanded bounds what one record batch of a compressed file may expand to.
const maxExpanded = 4 << 30

func (s *arrowScan) run(isFile bool) error {
	rest := s.data
	if isFile {
		var err error
		if rest, err = streamOfFile(s.data); err != nil {
			return err
		}
	}
	stop := len(rest) + s.start(isFile)
	for first := true; ; first = false {
		m, next, end, marked, err := wire.Next(rest)
		if err != nil {
			return fmt.Errorf("at byte %d: %w", stop-len(rest), err)
		}
		if end {
			return s.finish(first, marked || isFile)
		}
		switch {
		case first:
			err = s.plan(m)
		case m.Header == wire.HeaderSchema:
			err = wire.Errorf(wire.NoSchema, "a second schema")
		case m.Header == wire.HeaderBatch:
			err = s.batch(m)
		}
		if err != nil {
			return fmt.Errorf("at byte %d: %w", stop-len(rest), err)
		}
		rest = next
	}
}

// start is where the messages begin.
func (s *arrowScan) start(isFile bool) int {
	if isFile {
		return len(wire.FileMagic)
	}
	return 0
}

// streamOfFile is what lies between the magic at the start of a file and its footer.
func streamOfFile(data []byte) ([]byte, error) {
	const tail = 4 + 6 // length of the footer, magic
	if len(data) < len(wire.FileMagic)+tail || string(data[len(data)-6:]) != wire.FileMagic[:6] {
		return nil, wire.Errorf(wire.Truncated, "no ARROW1 at the end of %d bytes: the file is not complete", len(data))
	}
	footer := int64(int32(binary.LittleEndian.Uint32(data[len(data)-tail:])))
	end := int64(len(data)-tail) - footer
	if footer < 0 || end < int64(len(wire.FileMagic)) {
		return nil, wire.Errorf(wire.Truncated, "a footer of %d bytes in a file of %d", footer, len(data))
	}
	return data[len(wire.FileMagic):end], nil
}

// finish checks that the end is one.
func (s *arrowScan) finish(empty, ended bool) error {
	switch want, known := s.metaRows(); {
	case empty:
		return wire.Errorf(wire.NoSchema, "the file ends before its schema")
	case !ended:
		return wire.Errorf(wire.Truncated, "no end-of-stream marker after %d rows", s.rows)
	case known && want != s.rows:
		return wire.Errorf(wire.Truncated, "%d rows, the metadata %s says %d", s.rows, archivefile.MetaRows, want)
	}
	return intact(s.crc, s.schema.Meta[archivefile.MetaCRC])
}

// intact returns an error where the record batches are not as they were written, as far as the file says it.
func intact(sum uint32, want string) error {
	if want == "" || want == fmt.Sprintf("%08x", sum) {
		return nil
	}
	return wire.Errorf(wire.Truncated,
		"its record batches are damaged: their CRC-32C is %08x, and the metadata %s says %s", sum, archivefile.MetaCRC,
		want)
}

// checkArchive compares the record batches of an archive file with what it says of them.
func checkArchive(f *os.File, want string) (err error) {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	data, unmap, err := mapFile(f, st.Size())
	if err != nil {
		return err
	}
	defer unmap()
	defer catchFaults(&err)()
	rest, err := streamOfFile(data)
	for sum := uint32(0); err == nil; {
		m, next, end, _, e := wire.Next(rest)
		switch {
		case e != nil:
			return fmt.Errorf("at byte %d: %w", len(data)-len(rest), e)
		case end:
			return intact(sum, want)
		case m.Header == wire.HeaderBatch:
			sum = archivefile.CRC(sum, m)
		}
		rest = next
	}
	return err
}

func (s *arrowScan) metaRows() (int, bool) {
	if s.schema == nil {
		return 0, false
	}
	n, err := strconv.Atoi(s.schema.Meta[archivefile.MetaRows])
	return n, err == nil
}

// plan finds the columns.
func (s *arrowScan) plan(m wire.Message) (err error) {
	if s.schema, err = wire.ParseSchema(m, archivefile.Limits); err != nil {
		return err
	}
	f := wire.NewFinder(s.schema)
	s.features = f.Find("features", "a list of float16, float32 or float64", (*wire.Field).IsFloatList)
	s.label = f.Find("label", "an integer", (*wire.Field).IsInt)
	s.ts = f.Find("ts", "timestamp", (*wire.Field).IsTimestamp)
	s.weight = f.Find("weight", "a float", (*wire.Field).IsFloat)
	s.info = FeatureInfo{
		Model:   s.schema.Meta[arrowio.MetaModel],
		Version: s.schema.Meta[arrowio.MetaVersion],
		Archive: s.schema.Meta[archivefile.MetaDigest] != "",
	}
	s.id, s.k = -1, -1
	if s.info.Archive {
		s.id = f.Find("id", "16 bytes",
			func(c *wire.Field) bool { return c.Type == wire.FixedSizeBinary && c.Dict == nil })
	}
	s.classes, _ = strconv.Atoi(s.schema.Meta[archivefile.MetaClasses])
	s.scores(f)
	switch {
	case f.Err != nil:
		return f.Err
	case s.features < 0:
		return ErrNoFeatures
	case s.label < 0:
		return ErrNoLabels
	}
	s.want = f.Want
	return nil
}

// scores finds how many scores a row has, from the schema or, of lists of any length, from a column to be looked at.
func (s *arrowScan) scores(f *wire.Finder) {
	for i := range s.schema.Fields {
		switch c := &s.schema.Fields[i]; {
		case s.classes > 0:
			return
		case (c.Name == "logits" || c.Name == "probs") && c.Type == wire.FixedSizeList:
			s.classes = c.Size
		case (c.Name == "logits" || c.Name == "probs") && c.IsFloatList():
			s.k = i
			f.Want[i] = true
			return
		case (c.Name == "logit" || c.Name == "prob") && c.IsFloat():
			s.classes = 2
		}
	}
}

func (s *arrowScan) batch(m wire.Message) error {
	if s.info.Archive {
		s.crc = archivefile.CRC(s.crc, m)
	}
	cols := make([]*wire.Column, len(s.schema.Fields))
	s.inflater.Budget = maxExpanded
	n, err := s.schema.Batch(m, s.want, math.MaxInt32, s.inflater, func(i int, c *wire.Column) error {
		cols[i] = c
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	p := &FeaturePart{N: n, K: s.classes}
	if err := s.fill(p, cols); err != nil {
		return err
	}
	if err := p.check(s.rows); err != nil {
		return err
	}
	s.rows += n
	return s.part(p)
}

func (s *arrowScan) fill(p *FeaturePart, cols []*wire.Column) (err error) {
	if err := s.slab(p, cols[s.features]); err != nil {
		return err
	}
	if p.Label, err = integers(cols[s.label], p.N, s.rows); err != nil {
		return err
	}
	if s.ts >= 0 {
		if p.TS, err = timesOf(cols[s.ts], p.N, s.rows); err != nil {
			return err
		}
	}
	if s.weight >= 0 {
		w, err := wire.Floats(cols[s.weight], p.N, new([]float32))
		if err != nil {
			return err
		}
		p.Weighted = slices.ContainsFunc(w, func(v float32) bool { return v != 1 })
	}
	if s.id >= 0 {
		ids := cols[s.id].Data
		if len(ids) < 16*p.N {
			return wire.Errorf(wire.Shape, "column id: %d bytes for %d rows of 16", len(ids), p.N)
		}
		p.IDs = make([]arrowio.ID, p.N)
		for i := range p.IDs {
			copy(p.IDs[i][:], ids[16*i:])
		}
	}
	if s.k >= 0 && p.N > 0 {
		off, _, err := wire.Offsets(cols[s.k], cols[s.k].Child.N, nil)
		if err != nil {
			return err
		}
		p.K, _, err = wire.ListSize(cols[s.k], off, fileClasses)
		return err
	}
	return nil
}

// Bounds of one row of a file.
const (
	fileClasses  = 1 << 22
	fileFeatures = 1 << 22
)

// slab finds the features of a batch in the file, or reads them where they do not lie there one after the other.
func (s *arrowScan) slab(p *FeaturePart, c *wire.Column) error {
	first, child := 0, c.Child
	p.Width = child.Field.Bits / 8
	switch c.Field.Type {
	case wire.FixedSizeList:
		if p.D = c.Field.Size; p.D > fileFeatures || int64(child.N) != int64(c.N)*int64(p.D) {
			return wire.Errorf(wire.Shape, "column %q: %d values for %d rows of %d", c.Field.Name, child.N, c.N, p.D)
		}
	default:
		off, _, err := wire.Offsets(c, child.N, nil)
		if err != nil {
			return err
		}
		var dense bool
		if p.D, dense, err = wire.ListSize(c, off, fileFeatures); err != nil {
			return err
		}
		if !dense {
			return s.sparse(p, c, off)
		}
		first = int(off[0])
	}
	if p.D == 0 {
		p.Offset, p.Values = -1, nil
		for i := range c.N {
			p.Null = append(p.Null, int32(i))
		}
		return nil
	}
	if err := wire.ChildNulls(c, p.N, p.D, func(i int) { p.null(i) }); err != nil {
		return err
	}
	values := child.Data[first*p.Width:]
	if at := s.offset(values); at >= 0 {
		p.Offset = at
		return nil
	}
	part := *child
	part.Data = values
	var mem []float32
	v, err := wire.Floats(&part, p.N*p.D, &mem)
	p.Offset, p.Values = -1, v
	return err
}

func (p *FeaturePart) null(i int) {
	if n := len(p.Null); n == 0 || p.Null[n-1] != int32(i) {
		p.Null = append(p.Null, int32(i))
	}
}

// sparse reads lists among which null rows have no elements.
func (s *arrowScan) sparse(p *FeaturePart, c *wire.Column, off []int64) error {
	if int64(p.N)*int64(p.D) > wire.SparseValues(len(s.data)) {
		return wire.Errorf(wire.TooLarge, "column %q: %d rows of %d, most of them empty", c.Field.Name, p.N, p.D)
	}
	var mem []float32
	v, err := wire.Floats(c.Child, c.Child.N, &mem)
	if err != nil {
		return err
	}
	p.Offset, p.Values = -1, make([]float32, p.N*p.D)
	for i := range p.N {
		if row := v[off[i]:off[i+1]]; len(row) == p.D {
			copy(p.Values[i*p.D:], row)
		}
	}
	return wire.ChildNulls(c, p.N, p.D, func(i int) { p.null(i) })
}

// offset is where b lies in the file, -1 where it was decompressed.
func (s *arrowScan) offset(b []byte) int64 {
	if len(b) == 0 {
		return -1
	}
	base, at := uintptr(unsafe.Pointer(unsafe.SliceData(s.data))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if at < base || at >= base+uintptr(len(s.data)) {
		return -1
	}
	return int64(at - base)
}

// integers are labels: -1 where null. Errors count rows from first.
func integers(c *wire.Column, n, first int) ([]int32, error) {
	switch f := c.Field; {
	case f.Bits == 8 && f.Signed:
		return integersOf[int8](c, n, first)
	case f.Bits == 8:
		return integersOf[uint8](c, n, first)
	case f.Bits == 16 && f.Signed:
		return integersOf[int16](c, n, first)
	case f.Bits == 16:
		return integersOf[uint16](c, n, first)
	case f.Bits == 32 && f.Signed:
		return integersOf[int32](c, n, first)
	case f.Bits == 32:
		return integersOf[uint32](c, n, first)
	case f.Signed:
		return integersOf[int64](c, n, first)
	}
	return integersOf[uint64](c, n, first)
}

func integersOf[T wire.Number](c *wire.Column, n, first int) ([]int32, error) {
	v, err := wire.Values[T](c.Field.Name, c.Data, n)
	if err != nil {
		return nil, err
	}
	out := make([]int32, n)
	for i, y := range v {
		switch {
		case c.IsNull(i):
			out[i] = -1
		case y < 0 && int64(y) < -1, y > 0 && uint64(y) >= math.MaxInt32:
			return nil, fmt.Errorf(
				"column %s: %v at row %d, allowed are 0 and more, and -1 or null where not known",
				c.Field.Name, y, first+i)
		default:
			out[i] = int32(y)
		}
	}
	return out, nil
}

// timesOf are event times. Errors count rows from first.
func timesOf(c *wire.Column, n, first int) ([]arrowio.Time, error) {
	v, err := wire.Values[int64](c.Field.Name, c.Data, n)
	if err != nil {
		return nil, err
	}
	unit := wire.Nanoseconds[c.Field.Unit]
	limit := math.MaxInt64 / unit
	out := make([]arrowio.Time, n)
	for i, t := range v {
		if c.IsNull(i) || t > limit || t < -limit {
			return nil, fmt.Errorf("column ts: row %d is null or outside the years 1677 to 2262", first+i)
		}
		out[i] = t * unit
	}
	return out, nil
}
