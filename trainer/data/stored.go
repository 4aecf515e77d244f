package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"unsafe"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Region is a part of a file that holds features of rows of D: little-endian IEEE 754 numbers, row by row.
type Region struct {
	File   io.ReaderAt
	Name   string // of the file, for errors
	Offset int64
	Rows   int
	Width  int // bytes of a number: 2, 4, 8
}

// Stored are features that stay in files; the rows of its regions follow each other. What is read goes through a cache
// of blocks of neighbouring rows, so an order of rows that stays for a while in a few blocks ([Set.Order]) reads each
// block once, in one piece. float16 numbers are kept as such and converted when a mini-batch asks for them. It is safe
// for concurrent use.
//
// A read may fail in the middle of a training, where no caller takes an error: rows that cannot be read become NaN,
// which ends the training as diverged, and Err returns the reason.
type Stored struct {
	d       int
	regions []Region
	first   []int // row of each region, and the end
	block   int   // rows of a block
	window  int   // blocks that an order mixes at a time: half of the cache

	mu     sync.Mutex
	cache  map[int]*block
	oldest *block // list by time of use
	newest *block
	bytes  int64
	most   int64
	err    error
}

// block is neighbouring rows in memory, as float16 where all of them are, else as float32.
type block struct {
	number     int
	half       []uint16
	x          []float32
	prev, next *block
}

func (b *block) bytes() int64 { return int64(2*len(b.half) + 4*len(b.x)) }

const (
	blockBytes = 1 << 20
	// denseRows is how many rows of a block one call must want for the whole block to be read.
	denseRows = 4
	// orderBlocks is how many blocks an order mixes at a time, where the cache has room for twice as many.
	orderBlocks = 128
	// DefaultCache holds the blocks that an order mixes, and those of the next.
	DefaultCache = 2 * orderBlocks * blockBytes
)

// NewStored returns features of rows of d; cache bounds the memory of blocks in bytes, 0 means DefaultCache.
func NewStored(d int, cache int64, regions ...Region) (*Stored, error) {
	if cache <= 0 {
		cache = DefaultCache
	}
	s := &Stored{d: d, regions: regions, first: []int{0}, cache: map[int]*block{}, most: cache}
	width := 2
	for _, r := range regions {
		if d < 1 || r.Rows < 0 || r.Offset < 0 || r.Width != 2 && r.Width != 4 && r.Width != 8 {
			return nil, fmt.Errorf("%s: %d rows of %d numbers of %d bytes at byte %d",
				r.Name, r.Rows, d, r.Width, r.Offset)
		}
		width = max(width, min(r.Width, 4))
		s.first = append(s.first, s.first[len(s.first)-1]+r.Rows)
	}
	if s.Rows() > math.MaxInt32 {
		return nil, fmt.Errorf("%d rows of features, allowed are %d", s.Rows(), math.MaxInt32)
	}
	s.window = int(min(max(cache/(2*blockBytes), 1), orderBlocks))
	s.block = max(1, blockBytes/(max(d, 1)*width))
	return s, nil
}

// Rows is the number of rows.
func (s *Stored) Rows() int { return s.first[len(s.first)-1] }

// Bytes is what the features of n rows take in memory: 2 bytes each where all are float16, else 4.
func (s *Stored) Bytes(n int) int64 { return int64(n) * int64(s.d) * s.width() }

// width is the bytes of a feature in memory.
func (s *Stored) width() int64 {
	width := int64(2)
	for _, r := range s.regions {
		width = max(width, min(int64(r.Width), 4))
	}
	return width
}

// Err is the first error of reading.
func (s *Stored) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// region is that of a row.
func (s *Stored) region(row int) int {
	lo, hi := 0, len(s.regions)-1
	for lo < hi {
		if mid := (lo + hi) / 2; s.first[mid+1] <= row {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// read reads n rows from row on, as float16 where one region has them all so, else as float32.
func (s *Stored) read(row, n int) (half []uint16, x []float32, err error) {
	if r := s.region(row); s.regions[r].Width == 2 && row+n <= s.first[r+1] {
		half = make([]uint16, n*s.d)
		return half, nil, s.readPart(r, row, n, bytesOf(half))
	}
	x = make([]float32, n*s.d)
	for at := 0; at < n; {
		r := s.region(row + at)
		m := min(n-at, s.first[r+1]-row-at)
		if err := s.convert(r, row+at, m, x[at*s.d:(at+m)*s.d]); err != nil {
			return nil, nil, err
		}
		at += m
	}
	return nil, x, nil
}

// convert reads n rows of one region as float32.
func (s *Stored) convert(r, row, n int, dst []float32) error {
	switch s.regions[r].Width {
	case 2:
		half := make([]uint16, n*s.d)
		if err := s.readPart(r, row, n, bytesOf(half)); err != nil {
			return err
		}
		kernel.HalfToFloat32(dst, half)
		return nil
	case 4:
		return s.readPart(r, row, n, bytesOf(dst))
	}
	raw := make([]byte, 8*n*s.d)
	if err := s.readPart(r, row, n, raw); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
	}
	return nil
}

func (s *Stored) readPart(r, row, n int, to []byte) error {
	g := &s.regions[r]
	at := g.Offset + int64(row-s.first[r])*int64(s.d*g.Width)
	if got, err := g.File.ReadAt(to, at); got < len(to) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("%s: features of %d rows at byte %d: %w", g.Name, n, at, err)
	}
	return nil
}

// bytesOf views numbers as bytes, on the little-endian machines that this is for.
func bytesOf[T uint16 | float32](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// gather writes the features of rows, of which place says where they are, to dst.
func (s *Stored) gather(dst []float32, n int, place func(i int) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[int]int{}
	for i := range n {
		wanted[place(i)/s.block]++
	}
	for i := range n {
		row := place(i)
		number := row / s.block
		to := dst[i*s.d : (i+1)*s.d]
		b := s.cache[number]
		var err error
		if b == nil && wanted[number] >= min(denseRows, s.block) {
			b, err = s.load(number)
		}
		switch {
		case err != nil:
		case b != nil:
			s.use(b)
			b.row(to, row-number*s.block, s.d)
		default:
			err = s.single(to, row)
		}
		if err != nil {
			if s.err == nil {
				s.err = err
			}
			for j := range to {
				to[j] = float32(math.NaN())
			}
		}
	}
}

// row writes a row of the block.
func (b *block) row(to []float32, i, d int) {
	if b.half != nil {
		kernel.HalfToFloat32(to, b.half[i*d:(i+1)*d])
		return
	}
	copy(to, b.x[i*d:(i+1)*d])
}

func (s *Stored) single(to []float32, row int) error {
	half, x, err := s.read(row, 1)
	if err != nil {
		return err
	}
	(&block{half: half, x: x}).row(to, 0, s.d)
	return nil
}

// load reads a block into the cache, and lets go of those that were not used for longest.
func (s *Stored) load(number int) (*block, error) {
	row := number * s.block
	half, x, err := s.read(row, min(s.block, s.Rows()-row))
	if err != nil {
		return nil, err
	}
	b := &block{number: number, half: half, x: x}
	s.cache[number] = b
	s.bytes += b.bytes()
	s.link(b)
	for s.bytes > s.most && s.oldest != b {
		old := s.oldest
		s.unlink(old)
		delete(s.cache, old.number)
		s.bytes -= old.bytes()
	}
	return b, nil
}

// use makes a block the one that was used last.
func (s *Stored) use(b *block) {
	if s.newest != b {
		s.unlink(b)
		s.link(b)
	}
}

func (s *Stored) link(b *block) {
	b.prev, b.next = s.newest, nil
	if s.newest != nil {
		s.newest.next = b
	} else {
		s.oldest = b
	}
	s.newest = b
}

func (s *Stored) unlink(b *block) {
	if b.prev != nil {
		b.prev.next = b.next
	} else {
		s.oldest = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	} else {
		s.newest = b.prev
	}
}
