package acc

import (
	"fmt"

	"github.com/plumbline/plumbline/internal/binenc"
)

const classCountsVersion = 1

// AppendBinary appends the encoding (docs/format.md, ClassCounts).
func (c *ClassCounts) AppendBinary(b []byte) ([]byte, error) {
	c.fold()
	b = append(b, classCountsVersion)
	b = binenc.AppendUvarint(b, uint64(c.k))
	b = appendTotal(b, c.n, c.w)
	b = appendTotal(b, c.labelled, c.labelledW)
	b = binenc.AppendUvarint(b, uint64(len(c.cells.keys)))
	prev := uint32(0)
	for _, key := range c.cells.sorted() {
		e := c.cells.get(key)
		b = binenc.AppendUvarint(b, uint64(key-prev))
		b = binenc.AppendVarint(binenc.AppendUvarint(b, uint64(e[ccSeen])), e[ccSeenExcess])
		b = binenc.AppendVarint(binenc.AppendUvarint(b, uint64(e[ccRight])), e[ccRightExcess])
		prev = key
	}
	c.wrong.trim()
	b = binenc.AppendUvarint(b, uint64(len(c.wrong.keys)))
	last := uint64(0)
	for _, i := range c.wrong.sorted() {
		key, s := c.wrong.keys[i], c.wrong.sums[i]
		b = binenc.AppendUvarint(b, key-last)
		b = binenc.AppendVarint(binenc.AppendUvarint(b, uint64(s.n)), s.excess)
		last = key
	}
	return b, nil
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (c *ClassCounts) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	r.Version(classCountsVersion)
	k := r.Int("classes", 2, MaxClasses)
	if r.Err() != nil {
		return fmt.Errorf("decode class counts: %w", r.Err())
	}
	d, err := NewClassCounts(int(k))
	if err != nil {
		return fmt.Errorf("decode class counts: %w: %w", err, ErrCorrupt)
	}
	d.n, d.w = readTotal(&r)
	d.labelled, d.labelledW = readTotal(&r)
	leftW := d.labelledW - d.readCells(&r)
	if d.wrongRows = d.labelled - d.rightRows; d.wrongRows < 0 || leftW < 0 || d.wrongRows == 0 && leftW != 0 {
		r.Failf("%d correct rows of %d labelled ones, weight %d left", d.rightRows, d.labelled, leftW)
	}
	d.readPairs(&r, leftW)
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode class counts: %w", err)
	}
	*c = *d
	return nil
}

// readCells reads the cells and returns the Σw of the correct rows.
func (c *ClassCounts) readCells(r *binenc.Reader) (rightW int64) {
	const cellBytes = 5
	limit := int64(c.k) * Bands
	left, leftW, room, roomW := c.n, c.w, c.labelled, c.labelledW
	key := int64(-1)
	n := r.Count(cellBytes, int(limit))
	for ; n > 0 && r.Err() == nil; n-- {
		if key < 0 {
			key = r.Int("cell", 0, limit-1)
		} else {
			key += r.Int("cell step", 1, limit)
		}
		seen, seenW := readTotal(r)
		right, w := readTotal(r)
		if key >= limit || seen > left || seenW > leftW || right > room || w > roomW || seen == 0 && right == 0 {
			r.Failf("cell %d of %d and %d rows, left are %d and %d", key, seen, right, left, room)
			return 0
		}
		left, leftW, room, roomW = left-seen, leftW-seenW, room-right, roomW-w
		*c.cells.at(uint32(key)) = entry{seen, seenW - seen<<fixBits, right, w - right<<fixBits}
		c.rightRows += right
		rightW += w
	}
	if r.Err() == nil && (left != 0 || leftW != 0) {
		r.Failf("%d predictions are in no cell", left)
	}
	return rightW
}

// readPairs reads the pairs, whose rows weigh leftW; they may be fewer than the wrong rows only where there are MaxPairs.
func (c *ClassCounts) readPairs(r *binenc.Reader, leftW int64) {
	const pairBytes = 3
	limit, left := int64(c.k)*Bands*int64(c.k), c.wrongRows
	key, kept := int64(-1), r.Count(pairBytes, MaxPairs)
	for n := kept; n > 0 && r.Err() == nil; n-- {
		if key < 0 {
			key = r.Int("pair", 0, limit-1)
		} else {
			key += r.Int("pair step", 1, limit)
		}
		rows, w := readTotal(r)
		if key >= limit || rows == 0 || rows > left || w > leftW || key/int64(c.k)/Bands == key%int64(c.k) {
			r.Failf("pair %d of %d rows, left are %d", key, rows, left)
			return
		}
		left, leftW = left-rows, leftW-w
		c.wrong.add(uint64(key), pairSum{rows, w - rows<<fixBits})
	}
	switch {
	case r.Err() != nil:
	case left == 0 && leftW != 0, left != 0 && kept < MaxPairs:
		r.Failf("%d wrong rows are in no pair", left)
	case left != 0: // some are not kept: those of larger hashes
		var top uint64
		for _, key := range c.wrong.keys {
			top = max(top, mix64(key))
		}
		c.wrong.limit = top
	}
}
