package acc

import (
	"math"
	"slices"
	"unsafe"
)

// classBuffer gathers rows of weight 1 in arrays by symbol, without a search or a branch on the data, for ClassCounts of
// not too many classes. fold moves them to where they belong; whoever looks at the counts folds first.
type classBuffer struct {
	seen  []uint32 // predictions by symbol
	right []uint32 // correct labelled rows by symbol; nil where pairs has them
	pairs []uint32 // labelled rows by symbol and label, of few classes
	rows  int      // since the last fold
}

const (
	// bufferClasses is up to how many classes there is a buffer: 16 KiB an array.
	bufferClasses = 1024
	// pairClasses is up to how many classes it has pairs: 4 KiB.
	pairClasses = 16
	// bufferRows keep the counters from overflowing.
	bufferRows = math.MaxInt32
)

// buffered makes room for n rows of weight 1; false where there are too many classes.
func (c *ClassCounts) buffered(n int) bool {
	if c.k > bufferClasses {
		return false
	}
	f := &c.buffer
	if f.seen == nil {
		f.seen = make([]uint32, c.k*Bands)
		if c.k <= pairClasses {
			f.pairs = make([]uint32, c.k*Bands*c.k)
		} else {
			f.right = make([]uint32, c.k*Bands)
		}
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

// label adds labelled rows, and returns those that are wrong and not yet counted.
func (f *classBuffer) label(b *Block, symbols []uint32, rows []int32) []int32 {
	if f.pairs != nil {
		pairs, y, k := f.pairs, b.y[:len(symbols)], b.k
		for _, i := range rows {
			pairs[int(symbols[i])*k+int(y[i])]++
		}
		return nil
	}
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
			c.cells.at(uint32(sym))[ccRight] += int64(n)
			c.rightRows += int64(n)
		}
	}
	clear(f.right)
	for at, n := range f.pairs {
		if n == 0 {
			continue
		}
		sym, y := uint32(at/c.k), at%c.k
		if int(sym/Bands) == y {
			c.cells.at(sym)[ccRight] += int64(n)
			c.rightRows += int64(n)
		} else {
			c.wrong.add(c.pair(sym, y), pairSum{n: int64(n)})
			c.wrongRows += int64(n)
		}
	}
	clear(f.pairs)
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
	return counter * (cap(f.seen) + cap(f.right) + cap(f.pairs))
}
