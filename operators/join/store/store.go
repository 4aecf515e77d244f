package store

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sort"

	"github.com/plumbline/plumbline/internal/workdir"
)

// Options are the settings of a store; zero values mean the defaults.
type Options struct {
	Dir          string // base of the work directory, made when the first segment is full
	Prefix       string // of the work directory's name, different for stores that are not the same task
	SegmentBytes int    // a segment is full from here on; 4 MiB
	MaxOpen      int    // files open at a time; 64
}

// Store is a queue on disk with an index by id. Rows have consecutive numbers from 0. The zero value is not usable.
type Store struct {
	o        Options
	work     *workdir.Dir
	segments []*segment // oldest first; the last may be open
	index    *Index
	next     uint64
	oldest   uint64 // no live row before this one
	live     int

	opened   []*segment // files that are open, in the order of opening
	obsolete []string   // files of the last checkpoint that nothing here needs any more
	buf      []byte
	spare    []byte // buffer of the next open segment
	row      Row
}

// New returns an empty store. Close it.
func New(o Options) *Store {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 4 << 20
	}
	if o.MaxOpen == 0 {
		o.MaxOpen = 64
	}
	return &Store{o: o, index: NewIndex()}
}

// Len is the number of rows that are not gone.
func (s *Store) Len() int { return s.live }

// Next is the number that the next row will get.
func (s *Store) Next() uint64 { return s.next }

// Append adds a row at the end, with state 0, and returns its number. Nothing of r is kept.
func (s *Store) Append(r *Row) (uint64, error) {
	if s.next-s.base() >= math.MaxUint32 {
		return 0, fmt.Errorf("join store: %d rows from the oldest to the newest, allowed are %d", s.next-s.base(),
			uint32(math.MaxUint32))
	}
	open := s.open()
	if open == nil {
		open = newSegment(s.next, s.spare)
		s.spare = nil
		s.segments = append(s.segments, open)
	}
	s.buf = open.append(r, s.buf)
	s.index.Add(s.index.Hash(&r.ID), uint32(s.next))
	s.next++
	s.live++
	if len(open.data) < s.o.SegmentBytes {
		return s.next - 1, nil
	}
	return s.next - 1, s.seal(open)
}

// base is the number of the first row of the oldest segment.
func (s *Store) base() uint64 {
	if len(s.segments) == 0 {
		return s.next
	}
	return s.segments[0].first
}

// open is the segment that rows are added to, nil where there is none.
func (s *Store) open() *segment {
	if n := len(s.segments); n > 0 && s.segments[n-1].data != nil {
		return s.segments[n-1]
	}
	return nil
}

func (s *Store) seal(g *segment) error {
	if g.live == 0 {
		s.spare = g.data
		s.drop(g)
		return nil
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	data := g.data
	if err := g.seal(s.work.Path()); err != nil {
		return fmt.Errorf("join store: %w", err)
	}
	s.spare = data
	return nil
}

func (s *Store) makeDir() (err error) {
	if s.work == nil {
		s.work, err = workdir.New(s.o.Dir, s.o.Prefix)
	}
	return err
}

// Candidates returns the rows that may have the id, newest first, appended to dst. Read tells whether they have.
func (s *Store) Candidates(id ID, dst []uint64) []uint64 {
	found := s.index.Lookup(s.index.Hash(&id))
	if len(found) == 0 {
		return dst
	}
	return newestFirst(found, s.base(), dst)
}

// Read reads a row that is not gone; the result is valid until the next call of any method.
func (s *Store) Read(n uint64) (*Row, error) {
	g, i := s.find(n)
	if err := s.openFile(g); err != nil {
		return nil, fmt.Errorf("join store: %w", err)
	}
	rec, buf, err := g.record(i, s.buf)
	s.buf = buf
	if err == nil {
		err = g.parse(rec, &s.row, false)
	}
	if err != nil {
		return nil, fmt.Errorf("join store: %w", err)
	}
	return &s.row, nil
}

// find returns the place of a row that is not gone.
func (s *Store) find(n uint64) (*segment, int) {
	j := sort.Search(len(s.segments), func(j int) bool { return s.segments[j].first > n }) - 1
	if j < 0 || n-s.segments[j].first >= uint64(s.segments[j].rows()) {
		panic(fmt.Sprintf("store: row %d is gone", n))
	}
	return s.segments[j], int(n - s.segments[j].first)
}

// openFile opens the file of a segment and closes the one that has been open longest, where there are too many.
func (s *Store) openFile(g *segment) (err error) {
	if g.data != nil || g.file != nil {
		return nil
	}
	if len(s.opened) == s.o.MaxOpen {
		s.closeFile(s.opened[0])
	}
	if g.file, err = os.Open(g.path); err == nil {
		s.opened = append(s.opened, g)
	}
	return err
}

func (s *Store) closeFile(g *segment) {
	if g.file != nil {
		_ = g.file.Close() // it was only read
		g.file = nil
		s.opened = slices.DeleteFunc(s.opened, func(o *segment) bool { return o == g })
	}
}

// StateOf returns the state of a row that is not gone.
func (s *Store) StateOf(n uint64) State {
	g, i := s.find(n)
	return g.state(i)
}

// SetState sets the state of a row that is not gone; to remove it, call Remove.
func (s *Store) SetState(n uint64, st State) {
	if st >= Gone {
		panic("store: a row goes by Remove")
	}
	g, i := s.find(n)
	g.setState(i, st)
}

// Remove removes a row that is not gone; id is its id.
func (s *Store) Remove(id ID, n uint64) {
	g, i := s.find(n)
	s.index.Remove(s.index.Hash(&id), uint32(n))
	g.setState(i, Gone)
	g.live--
	s.live--
	if g.live == 0 && g.data == nil {
		s.drop(g)
	}
}

// drop forgets a segment whose rows are gone.
func (s *Store) drop(g *segment) {
	s.closeFile(g)
	s.segments = slices.DeleteFunc(s.segments, func(o *segment) bool { return o == g })
	switch {
	case g.path == "":
	case g.listed:
		s.obsolete = append(s.obsolete, g.path)
	default:
		_ = os.Remove(g.path) // what is left goes with the directory
	}
}

// Oldest returns the number of the first row that is not gone.
func (s *Store) Oldest() (uint64, bool) {
	n, ok := s.After(s.oldest, func(State) bool { return true })
	if ok {
		s.oldest = n
	}
	return n, ok
}

// After returns the first row with a number of at least n that is not gone and whose state is wanted.
func (s *Store) After(n uint64, want func(State) bool) (uint64, bool) {
	j := sort.Search(len(s.segments), func(j int) bool { return s.segments[j].first > n }) - 1
	for j = max(j, 0); j < len(s.segments); j++ {
		g := s.segments[j]
		i := 0
		if n > g.first {
			i = int(min(n-g.first, uint64(g.rows())))
		}
		for ; i < g.rows(); i++ {
			if st := g.state(i); st != Gone && want(st) {
				return g.first + uint64(i), true
			}
		}
	}
	return 0, false
}

// Shrink gives back memory of the index that a burst has left.
func (s *Store) Shrink() { s.index.Shrink() }

// Bytes are those of all segments, rows that are gone included.
func (s *Store) Bytes() int64 {
	n := int64(0)
	for _, g := range s.segments {
		n += g.size + int64(len(g.data))
	}
	return n
}

// Close closes the files and removes the work directory. The store is of no use after it; closing twice does nothing.
func (s *Store) Close() error {
	for _, g := range slices.Clone(s.opened) {
		s.closeFile(g)
	}
	if s.work == nil {
		return nil
	}
	w := s.work
	s.work = nil
	return w.Remove()
}
