package archivefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/half"
	"github.com/plumbline/plumbline/arrowio/internal/record"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// Schema metadata of archive files, beside that of messages; numbers are decimal.
const (
	MetaClasses   = "plumbline.classes"   // K
	MetaRows      = "plumbline.rows"      // of the file
	MetaSequence  = "plumbline.sequence"  // number of the file among those of its partition
	MetaPartition = "plumbline.partition" // of the logits and labels topics
	MetaFirst     = "plumbline.first"     // TOPIC/PARTITION/OFFSET of the message that completed the first row
	MetaLast      = "plumbline.last"      // and the last
	MetaOldest    = "plumbline.oldest"    // label time of the oldest row, ns
	MetaNewest    = "plumbline.newest"    // and the newest
	MetaDigest    = "plumbline.digest"    // SHA-256 over those of the file's segments: equal for equal rows
	MetaCRC       = "plumbline.crc32c"    // of all record batches, metadata and body, 8 hexadecimal digits
)

// Rows are labelled rows with features, of one model version and one shape, that become one record batch of an
// archive file.
type Rows struct {
	Model, Version string
	K, D           int
	Probs          bool // Scores are probabilities
	Half           bool // Features are float16

	IDs      []arrowio.ID // zero where a row has none
	TS       []arrowio.Time
	LabelTS  []arrowio.Time
	Label    []int32
	Scores   []float32 // N×K; nil where the archive has none
	Features []byte    // N×D float16 or float32, little endian
	Weight   []float32
	Columns  []string   // slice columns
	Slices   [][]string // by column; "" where null
}

// N is the number of rows.
func (r *Rows) N() int { return len(r.Label) }

// FeatureBytes is the size of a feature.
func (r *Rows) FeatureBytes() int {
	if r.Half {
		return 2
	}
	return 4
}

// Bytes is about what the rows take in memory and in a file.
func (r *Rows) Bytes() int {
	const fixed = 16 + 8 + 8 + 4 + 4 // id, times, label, weight
	n := r.N()*fixed + len(r.Scores)*4 + len(r.Features)
	for _, c := range r.Slices {
		for _, v := range c {
			n += 4 + len(v)
		}
	}
	return n
}

// Capacity is about what the memory of rows takes, which Reset keeps.
func (r *Rows) Capacity() int {
	n := 16*cap(r.IDs) + 8*(cap(r.TS)+cap(r.LabelTS)) + 4*(cap(r.Label)+cap(r.Weight)+cap(r.Scores)) + cap(r.Features)
	for _, c := range r.Slices {
		n += int(unsafe.Sizeof("")) * cap(c)
	}
	return n
}

// AppendFeatures appends the features of one row. It appends nothing and reports false where one of them is not finite,
// or not as a float16.
func (r *Rows) AppendFeatures(x []float32) bool {
	out := slices.Grow(r.Features, len(x)*r.FeatureBytes())
	if r.Half {
		n := len(out)
		out = out[:n+2*len(x)]
		if len(x) > 0 && !half.Encode(unsafe.Slice((*uint16)(unsafe.Pointer(&out[n])), len(x)), x) {
			return false
		}
	} else {
		for _, v := range x {
			if v-v != 0 {
				return false
			}
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	r.Features = out
	return true
}

// Reset removes the rows and keeps their memory.
func (r *Rows) Reset() {
	r.IDs, r.TS, r.LabelTS, r.Label = r.IDs[:0], r.TS[:0], r.LabelTS[:0], r.Label[:0]
	r.Scores, r.Features, r.Weight = r.Scores[:0], r.Features[:0], r.Weight[:0]
	for i := range r.Slices {
		clear(r.Slices[i])
		r.Slices[i] = r.Slices[i][:0]
	}
}

// record is the rows as one record; the columns are views.
func (r *Rows) record(segment string) arrow.Record {
	n := r.N()
	b := record.New(n)
	b.Meta(arrowio.MetaModel, r.Model)
	b.Meta(arrowio.MetaVersion, r.Version)
	b.Meta(MetaClasses, strconv.Itoa(r.K))
	b.Meta("plumbline.segment", segment)
	b.Add("id", true, idArray(r.IDs))
	b.Add("ts", false, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, r.TS, nil))
	b.Add("label_ts", false, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, r.LabelTS, nil))
	if len(r.Scores) > 0 {
		name := "logits"
		if r.Probs {
			name = "probs"
		}
		b.Add(name, false, record.Slab(r.Scores, r.K))
	}
	b.Add("label", false, record.Fixed(arrow.PrimitiveTypes.Int32, r.Label, nil))
	t := arrow.PrimitiveTypes.Float32
	if r.Half {
		t = arrow.FixedWidthTypes.Float16
	}
	b.Add("features", false, record.List(record.Array(t, n*r.D, 0, nil, nil, r.Features), n, r.D, nil))
	b.Add("weight", false, record.Fixed(arrow.PrimitiveTypes.Float32, r.Weight, nil))
	for i, c := range r.Columns {
		b.Add(c, true, record.Texts(r.Slices[i]))
	}
	return b.Record()
}

// idArray is a fixed_size_binary<16> array; an id of zeros is null.
func idArray(ids []arrowio.ID) arrow.Array {
	flat := make([]byte, 0, len(ids)*len(arrowio.ID{}))
	for i := range ids {
		flat = append(flat, ids[i][:]...)
	}
	valid, nulls := record.Bitmap(len(ids), func(i int) bool { return ids[i] == arrowio.ID{} })
	return record.Array(&arrow.FixedSizeBinaryType{ByteWidth: len(arrowio.ID{})}, len(ids), nulls, nil, valid, flat)
}

// EncodeSegment returns rows as an Arrow IPC stream of one record batch. The same rows and name give the same
// bytes; the name, which stands in the metadata, keeps two segments of equal rows apart.
func EncodeSegment(r *Rows, name string) ([]byte, error) {
	rec := r.record(name)
	defer rec.Release()
	return record.Encode(rec)
}

// Segment is a part of an archive file: an encoded record batch in a file of its own.
type Segment struct {
	Name  string // lower-case hexadecimal SHA-256 of its bytes
	Bytes int64
	Path  string
}

// File is an archive file that is complete, in segments.
type File struct {
	Group, Model, Version string
	Partition             int
	Sequence              uint64 // of the files of the partition
	K                     int
	Rows                  int64
	First, Last           arrowio.Origin // of the messages that completed the first and the last row
	Oldest, Newest        arrowio.Time   // of the labels
	Segments              []Segment
}

// Name is the file's name: group, partition, sequence, and the offset of the message that completed the first row.
func (f *File) Name() string {
	return fmt.Sprintf("%s-%05d-%010d-%012d.arrow", f.Group, f.Partition, f.Sequence, f.First.Offset)
}

// Bytes is the size of all segments.
func (f *File) Bytes() int64 {
	n := int64(0)
	for _, s := range f.Segments {
		n += s.Bytes
	}
	return n
}

// CRC adds a record batch to the checksum of those before.
func CRC(sum uint32, m wire.Message) uint32 {
	return crc32.Update(crc32.Update(sum, castagnoli, m.Meta), castagnoli, m.Body)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged means that a segment's bytes have changed since they were written: no attempt is better.
var ErrDamaged = errors.New("damaged")

// readSegment reads a segment, whose bytes must be those of its name.
func readSegment(s Segment, read func(Segment) ([]byte, error)) ([]byte, error) {
	data, err := read(s)
	if err != nil {
		return nil, err
	}
	if sha := sha256.Sum256(data); hex.EncodeToString(sha[:]) != s.Name {
		return nil, fmt.Errorf("archive segment %s: the file %s is %w: its %d bytes have another SHA-256",
			s.Name, s.Path, ErrDamaged, len(data))
	}
	return data, nil
}

// check reads all segments, and returns the checksum of the record batches that a file of them has.
func (f *File) check(read func(Segment) ([]byte, error)) (sum uint32, err error) {
	for _, s := range f.Segments {
		data, err := readSegment(s, read)
		if err != nil {
			return 0, err
		}
		for rest := data; ; {
			m, next, end, _, err := wire.Next(rest)
			if err != nil {
				return 0, fmt.Errorf("archive segment %s: %w", s.Name, err)
			}
			if end {
				break
			}
			if m.Header == wire.HeaderBatch {
				sum = CRC(sum, m)
			}
			rest = next
		}
	}
	return sum, nil
}

func (f *File) meta(sum uint32) (keys, values []string) {
	add := func(k, v string) { keys, values = append(keys, k), append(values, v) }
	if f.Model != "" {
		add(arrowio.MetaModel, f.Model)
	}
	if f.Version != "" {
		add(arrowio.MetaVersion, f.Version)
	}
	add(MetaClasses, strconv.Itoa(f.K))
	add(MetaRows, strconv.FormatInt(f.Rows, 10))
	add(MetaPartition, strconv.Itoa(f.Partition))
	add(MetaSequence, strconv.FormatUint(f.Sequence, 10))
	add(MetaFirst, f.First.String())
	add(MetaLast, f.Last.String())
	add(MetaOldest, strconv.FormatInt(f.Oldest, 10))
	add(MetaNewest, strconv.FormatInt(f.Newest, 10))
	add(MetaDigest, f.Digest())
	add(MetaCRC, fmt.Sprintf("%08x", sum))
	return keys, values
}

// Write writes the segments of a file, one at a time in memory, as one Arrow IPC file. Each is read twice: the first
// message of the file has the checksum of all.
func Write(w io.WriteSeeker, f *File, read func(Segment) ([]byte, error)) error {
	sum, err := f.check(read)
	if err != nil {
		return err
	}
	var fw *ipc.FileWriter
	var schema *arrow.Schema
	for _, s := range f.Segments {
		data, err := readSegment(s, read)
		if err != nil {
			return err
		}
		r, err := ipc.NewReader(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("archive segment %s: %w", s.Name, err)
		}
		if fw == nil {
			md := arrow.NewMetadata(f.meta(sum))
			schema = arrow.NewSchema(r.Schema().Fields(), &md)
			if fw, err = ipc.NewFileWriter(w, ipc.WithSchema(schema)); err != nil {
				return err
			}
		}
		for r.Next() && err == nil {
			err = writeAs(fw, schema, r.Record())
		}
		if err == nil {
			err = r.Err()
		}
		r.Release()
		if err != nil {
			return fmt.Errorf("archive segment %s: %w", s.Name, err)
		}
	}
	if fw == nil {
		return fmt.Errorf("archive file %s has no segments", f.Name())
	}
	return fw.Close()
}
