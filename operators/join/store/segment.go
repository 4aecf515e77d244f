package store

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/filesum"
)

// ID is the id of a row.
type ID = [16]byte

// Name is a text that many rows have in common, such as a model's; the zero value is none.
type Name struct {
	Text string
	Set  bool
}

// Row is the content of a row, beside its number and state.
type Row struct {
	ID    ID
	Names []Name
	Body  []byte
}

// State is the state of a row. The zero value is that of a new row; Gone is the last.
type State uint8

// Gone is the state of a row that has been removed. The states below are the caller's.
const Gone State = 3

const (
	magic   = "PLBJ"
	version = 1
	// header is the magic, the version and the number of the first row: two segments never have the same bytes.
	header = len(magic) + 1 + 8

	// A segment remembers so many different names, and so many bytes of them; others stand in each row.
	maxNames     = 256
	maxNameBytes = 16 << 10
)

// Codes of a name in a row; a code from nameKnown on is an index into the segment's names.
const (
	nameNone  = iota
	nameHere  // the text follows
	nameNew   // the text follows, and gets the next index
	nameKnown // and above
)

// segment is a run of rows. While it is open its bytes are in data, and more may come.
type segment struct {
	first  uint64
	ends   []uint32 // by row: end of its record
	states []byte   // two bits a row
	live   int
	data   []byte // nil once it is a file

	names     []string
	nameBytes int
	known     map[string]int // of an open segment only

	hash   [filesum.Size]byte
	size   int64
	path   string
	file   *os.File
	listed bool // in the last checkpoint: the file may have to be read for it
}

func newSegment(first uint64, buf []byte) *segment {
	s := &segment{first: first, known: map[string]int{}}
	s.data = append(buf[:0], magic...)
	s.data = append(s.data, version)
	s.data = binary.LittleEndian.AppendUint64(s.data, first)
	return s
}

func (s *segment) rows() int { return len(s.ends) }

func (s *segment) state(i int) State { return State(s.states[i/4] >> (i % 4 * 2) & 3) }

func (s *segment) setState(i int, st State) {
	b := &s.states[i/4]
	*b = *b&^(3<<(i%4*2)) | byte(st)<<(i%4*2)
}

// append adds a record: uvarint length of the rest, id, uvarint number of names, names, body.
func (s *segment) append(r *Row, scratch []byte) []byte {
	rest := append(scratch[:0], r.ID[:]...)
	rest = binenc.AppendUvarint(rest, uint64(len(r.Names)))
	for _, n := range r.Names {
		rest = s.appendName(rest, n)
	}
	rest = append(rest, r.Body...)
	s.data = binenc.AppendUvarint(s.data, uint64(len(rest)))
	s.data = append(s.data, rest...)
	s.took()
	return rest
}

// took counts the record that ends where data ends.
func (s *segment) took() {
	if s.rows()%4 == 0 {
		s.states = append(s.states, 0)
	}
	s.ends = append(s.ends, uint32(len(s.data)))
	s.live++
}

func (s *segment) appendName(dst []byte, n Name) []byte {
	if !n.Set {
		return binenc.AppendUvarint(dst, nameNone)
	}
	if i, ok := s.known[n.Text]; ok {
		return binenc.AppendUvarint(dst, uint64(nameKnown+i))
	}
	if !s.remember(n.Text) {
		return binenc.AppendString(binenc.AppendUvarint(dst, nameHere), n.Text)
	}
	return binenc.AppendString(binenc.AppendUvarint(dst, nameNew), n.Text)
}

func (s *segment) remember(text string) bool {
	if len(s.names) == maxNames || s.nameBytes+len(text) > maxNameBytes {
		return false
	}
	if s.known != nil {
		s.known[text] = len(s.names)
	}
	s.names = append(s.names, text)
	s.nameBytes += len(text)
	return true
}

// parse reads a record without its length. With learn set it is read for the first time since the segment came from
// a checkpoint, and its new names are remembered.
func (s *segment) parse(rec []byte, r *Row, learn bool) error {
	in := binenc.NewReader(rec)
	copy(r.ID[:], in.Raw(len(r.ID)))
	r.Names = r.Names[:0]
	for range in.Count(1, 1<<16) {
		r.Names = append(r.Names, s.parseName(&in, learn))
	}
	r.Body = in.Raw(in.Len())
	return in.Err()
}

func (s *segment) parseName(in *binenc.Reader, learn bool) Name {
	switch code := in.Uvarint(); code {
	case nameNone:
		return Name{}
	case nameHere:
		return Name{in.String(maxNameBytes), true}
	case nameNew:
		text := in.String(maxNameBytes)
		if learn && in.Err() == nil && !s.remember(text) {
			in.Failf("more than %d names, or %d bytes of them, in a segment", maxNames, maxNameBytes)
		}
		return Name{text, true}
	default:
		if code-nameKnown >= uint64(len(s.names)) {
			in.Failf("name %d of %d", code-nameKnown, len(s.names))
			return Name{}
		}
		return Name{s.names[code-nameKnown], true}
	}
}

// load fills a segment that has nothing but its number from its bytes, of a checkpoint.
func (s *segment) load(data []byte) error {
	want := newSegment(s.first, nil).data
	if len(data) < header || string(data[:header]) != string(want) {
		return fmt.Errorf("segment of row %d: it begins with % x, want % x", s.first, data[:min(len(data), header)],
			want)
	}
	s.data = data[:header]
	var r Row
	for in := binenc.NewReader(data[header:]); in.Len() > 0; {
		rec := in.Bytes(len(data))
		if err := in.Err(); err != nil {
			return fmt.Errorf("segment of row %d: %w", s.first, err)
		}
		if err := s.parse(rec, &r, true); err != nil {
			return fmt.Errorf("row %d: %w", s.first+uint64(s.rows()), err)
		}
		s.data = data[:header+in.Offset()]
		s.took()
	}
	return nil
}

// seal makes the segment a file.
func (s *segment) seal(dir string) error {
	s.hash, s.size = filesum.Fast(s.data), int64(len(s.data))
	s.path = filepath.Join(dir, s.name())
	if err := os.WriteFile(s.path, s.data, 0o600); err != nil {
		return err
	}
	s.data, s.known = nil, nil
	return nil
}

func (s *segment) name() string { return hex.EncodeToString(s.hash[:]) }

// record returns the bytes of row i without their length; buf is used where they must be read.
func (s *segment) record(i int, buf []byte) (rec, used []byte, err error) {
	start := uint32(header)
	if i > 0 {
		start = s.ends[i-1]
	}
	if s.data != nil {
		rec = s.data[start:s.ends[i]]
	} else {
		n := int(s.ends[i] - start)
		if cap(buf) < n {
			buf = make([]byte, n+n/4)
		}
		buf = buf[:n]
		if _, err := s.file.ReadAt(buf, int64(start)); err != nil {
			return nil, buf, err
		}
		rec = buf
	}
	n, w := binary.Uvarint(rec)
	if w <= 0 || n != uint64(len(rec)-w) {
		return nil, buf, fmt.Errorf("row %d: the record has not the length that it says", s.first+uint64(i))
	}
	return rec[w:], buf, nil
}
