package acc

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// classBuffer gathers rows of weight 1 for ClassCounts of few classes, in arrays by symbol, without a search or a
// branch on the data. fold moves them to the counts, and must be called before the counts are read.
type classBuffer struct {
	seen  []uint32 // predictions by symbol
	right []uint32 // correct labelled rows by symbol, while there are no pairs
	pairs []uint8  // labelled rows by symbol and label, modulo pairWrap, up to whole words; nil at first
	rows  int      // since the last fold
}

const (
	// bufferClasses is up to how many classes there is a buffer: 16 KiB an array.
	bufferClasses = 1024
	// pairClasses is up to how many classes it may have pairs: 64 KiB, which stay in the second cache. It has them once
	// one pair in pairShare is known as a wrong one: these take about as much memory in the hash table.
	pairClasses = 128
	pairShare   = 32
	pairWrap    = 1 << 8
	pairWord    = 8 // counters
	// bufferRows keep the counters from overflowing.
	bufferRows = math.MaxInt32
)

// buffered makes room for n rows of weight 1; false if there are too many classes for a buffer.
func (c *ClassCounts) buffered(n int) bool {
	if c.k > bufferClasses {
		return false
	}
	f := &c.buffer
	if f.seen == nil {
		f.seen, f.right = make([]uint32, c.k*Bands), make([]uint32, c.k*Bands)
	}
	if f.rows > bufferRows-n {
		c.fold()
	}
	f.rows += n
	return true
}

// predict adds predictions.
func (f *classBuffer) predict(symbols []uint32, rows []int32) {
	seen := f.seen
	for _, i := range rows {
		seen[symbols[i]]++
	}
}

// label adds labelled rows, and returns the wrong ones that it has not counted.
func (f *classBuffer) label(b *Block, symbols []uint32, rows []int32) []int32 {
	wrong := slices.Grow(b.wrong[:0], len(rows))[:len(rows)]
	n, right, hit := 0, f.right, b.of.Hit[:len(symbols)]
	for _, i := range rows { // which are wrong cannot be predicted: all are written, and some overwritten
		h := hit[i]
		right[symbols[i]] += uint32(h)
		wrong[n] = i
		n += 1 - int(h)
	}
	b.wrong = wrong
	return wrong[:n]
}

// hasPairs reports whether the buffer counts pairs, and makes room for them when it is time.
func (c *ClassCounts) hasPairs() bool {
	f := &c.buffer
	if f.pairs != nil || c.k > pairClasses {
		return f.pairs != nil
	}
	if all := Bands * c.k * c.k; len(c.wrong.keys) >= all/pairShare {
		f.pairs = make([]uint8, (all+pairWord-1)&^(pairWord-1))
	}
	return f.pairs != nil
}

// labelPairs adds labelled rows, right and wrong ones, to the buffer's pairs.
func (c *ClassCounts) labelPairs(y []int32, symbols []uint32, rows []int32) {
	pairs, k := c.buffer.pairs, uint(c.k)
	y = y[:len(symbols)]
	for _, i := range rows {
		at := uint(symbols[i])*k + uint(y[i])
		n := pairs[at] + 1
		pairs[at] = n
		if n != 0 {
			continue
		}
		if sym := symbols[i]; sym/Bands == uint32(y[i]) { // it came round
			c.moveRight(sym, pairWrap)
		} else {
			c.wrong.add(uint64(at), pairSum{n: pairWrap})
			c.wrongRows += pairWrap
		}
	}
}

// moveRight adds n correct rows to the table.
func (c *ClassCounts) moveRight(sym uint32, n int64) {
	c.cells.at(sym)[ccRight] += n
	c.rightRows += n
}

// fold moves the rows of the buffer into the tables.
func (c *ClassCounts) fold() {
	f := &c.buffer
	if f.rows == 0 {
		return
	}
	f.rows = 0
	for sym, n := range f.seen {
		if n > 0 {
			c.cells.at(uint32(sym))[ccSeen] += int64(n)
		}
	}
	clear(f.seen)
	for sym, n := range f.right {
		if n > 0 {
			c.moveRight(uint32(sym), int64(n))
		}
	}
	clear(f.right)
	c.foldPairs()
}

// foldPairs moves the rows of the buffer's pairs; the place of a pair in the buffer is its key.
func (c *ClassCounts) foldPairs() {
	const some = 256
	var keys [some]uint64
	var rows, places [some]uint32
	pairs, n := c.buffer.pairs, 0
	sym, end := 0, c.k // of the places of sym
	for from := 0; from < len(pairs); from += pairWord {
		word := binary.LittleEndian.Uint64(pairs[from:])
		for word != 0 {
			shift := bits.TrailingZeros64(word) &^ 7
			at, count := from+shift/8, word>>shift&(pairWrap-1)
			word &^= (pairWrap - 1) << shift
			for at >= end {
				sym, end = sym+1, end+c.k
			}
			if at-(end-c.k) == sym/Bands {
				c.moveRight(uint32(sym), int64(count))
				continue
			}
			keys[n], rows[n] = uint64(at), uint32(count)
			c.wrongRows += int64(count)
			if n++; n == some {
				c.wrong.addRows(keys[:], rows[:], places[:])
				n = 0
			}
		}
	}
	c.wrong.addRows(keys[:n], rows[:n], places[:n])
	clear(pairs)
}

// reset forgets the rows and keeps the memory.
func (f *classBuffer) reset() {
	if f.rows > 0 {
		clear(f.seen)
		clear(f.right)
		clear(f.pairs)
	}
	f.rows = 0
}

func (f *classBuffer) bytes() int {
	const counter = int(unsafe.Sizeof(uint32(0)))
	return counter*(cap(f.seen)+cap(f.right)) + cap(f.pairs)
}
