package store

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/internal/filesum"
)

// File is a file that a checkpoint refers to.
type File struct {
	Name  string // lower-case hexadecimal, of package filesum
	Bytes int64
	Path  string
}

const (
	inMemory = iota
	inFile
)

// AppendState appends what a checkpoint must hold beside Files: number of the next row, then the segments, by first
// row, each with the states of its rows. It is canonical for the same calls since an empty store.
//
// The files of this checkpoint stay until the next call: a checkpoint may be copied away while the store goes on.
func (s *Store) AppendState(dst []byte) []byte {
	for _, path := range s.obsolete {
		_ = os.Remove(path)
	}
	s.obsolete = nil
	dst = binenc.AppendUvarint(dst, s.next)
	dst = binenc.AppendUvarint(dst, uint64(len(s.segments)))
	for _, g := range s.segments {
		dst = binenc.AppendUvarint(dst, g.first)
		dst = binenc.AppendUvarint(dst, uint64(g.rows()))
		if g.data != nil {
			dst = binenc.AppendBytes(append(dst, inMemory), g.data)
		} else {
			g.listed = true
			dst = append(append(dst, inFile), g.hash[:]...)
			dst = binenc.AppendUvarint(dst, uint64(g.size))
		}
		dst = append(dst, g.states...)
	}
	return dst
}

// Files are those that the latest AppendState refers to.
func (s *Store) Files() []File {
	var out []File
	for _, g := range s.segments {
		if g.data == nil {
			out = append(out, File{g.name(), g.size, g.path})
		}
	}
	return out
}

// Restore fills an empty store from the bytes of AppendState. Fetch puts a file of the checkpoint at a path; a link is
// enough, because files never change. Visit gets every row that is still there, in order. After an error the store must
// not be used.
func (s *Store) Restore(r *binenc.Reader, fetch func(name, path string) error,
	visit func(n uint64, st State, row *Row) error) error {
	next := r.Uvarint()
	for range r.Count(3, math.MaxInt32) {
		if err := s.restoreSegment(r, next, fetch); err != nil {
			return err
		}
		if err := s.visit(s.segments[len(s.segments)-1], visit); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if s.open() != nil && next != s.next {
		return fmt.Errorf("join store: next row %d after row %d of the open segment", next, s.next)
	}
	s.next = next
	return nil
}

func (s *Store) restoreSegment(r *binenc.Reader, next uint64, fetch func(name, path string) error) error {
	if s.open() != nil {
		return fmt.Errorf("join store: a segment after the open one")
	}
	g := &segment{first: r.Uvarint()}
	rows := r.Int("rows", 0, math.MaxUint32)
	if r.Err() == nil && (g.first < s.next || g.first > next || uint64(rows) > next-g.first ||
		next-g.first > math.MaxUint32) {
		return fmt.Errorf("join store: segment of rows %d and %d more after row %d, next row %d", g.first, rows,
			s.next, next)
	}
	data, err := s.segmentBytes(r, g, fetch)
	if err != nil {
		return err
	}
	if err := g.load(data); err != nil {
		return fmt.Errorf("join store: %w", err)
	}
	if int64(g.rows()) != rows {
		return fmt.Errorf("join store: segment of row %d has %d rows, the checkpoint says %d", g.first, g.rows(), rows)
	}
	if copy(g.states, r.Raw(len(g.states))); r.Err() != nil {
		return r.Err()
	}
	s.segments = append(s.segments, g)
	s.next = g.first + uint64(rows)
	return nil
}

// segmentBytes reads the bytes of a segment, from the checkpoint or from the file that it names.
func (s *Store) segmentBytes(r *binenc.Reader, g *segment, fetch func(name, path string) error) ([]byte, error) {
	switch kind := r.Byte(); {
	case r.Err() != nil:
		return nil, r.Err()
	case kind == inMemory:
		g.known = map[string]int{}
		data := append(make([]byte, 0, s.o.SegmentBytes), r.Bytes(math.MaxInt32)...)
		return data, r.Err()
	case kind == inFile:
		copy(g.hash[:], r.Raw(filesum.Size))
		g.size = r.Int("size", 0, math.MaxInt64)
		if err := r.Err(); err != nil {
			return nil, err
		}
		return s.fetch(g, fetch)
	default:
		return nil, fmt.Errorf("join store: segment of kind %d", kind)
	}
}

// fetch brings the file of a segment into the work directory and reads it.
func (s *Store) fetch(g *segment, fetch func(name, path string) error) ([]byte, error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	g.path = filepath.Join(s.work.Path(), g.name())
	return fetchFile(g.path, g.hash, g.size, fetch)
}

// fetchFile brings a file of a checkpoint to a path and reads it.
func fetchFile(path string, hash [filesum.Size]byte, size int64, fetch func(name, path string) error) ([]byte, error) {
	name := hex.EncodeToString(hash[:])
	if err := fetch(name, path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("join store: %w", err)
	}
	sum := filesum.Like(hash[:])
	sum.Write(data)
	if got := sum.Sum(nil); !bytes.Equal(got, hash[:]) || int64(len(data)) != size {
		return nil, fmt.Errorf("join store: file %s has %d bytes with hash %x, want %d", name, len(data), got, size)
	}
	return data, nil
}

// visit enters the rows of a restored segment that are not gone. A file's bytes leave memory after that.
func (s *Store) visit(g *segment, visit func(n uint64, st State, row *Row) error) error {
	g.live = 0
	for i := range g.rows() {
		st := g.state(i)
		if st == Gone {
			continue
		}
		rec, _, err := g.record(i, nil)
		if err == nil {
			err = g.parse(rec, &s.row, false)
		}
		if err != nil {
			return fmt.Errorf("join store: %w", err)
		}
		g.live++
		s.live++
		n := g.first + uint64(i)
		s.index.Add(s.index.Hash(&s.row.ID), uint32(n))
		if err := visit(n, st, &s.row); err != nil {
			return err
		}
	}
	if g.path != "" {
		g.data = nil
		g.listed = true
		if g.live == 0 {
			s.drop(g)
			return nil
		}
		g.ends = append(make([]uint32, 0, len(g.ends)), g.ends...) // it grew by doubling
	}
	return nil
}
