package acc

import (
	"fmt"
	"iter"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Bands is the number of confidence bands of ClassCounts: (0, .6], (.6, .9], (.9, .99], (.99, 1].
const Bands = 4

// The last grid cell of each band except the last.
const (
	band0End = 2 * (GridCells * 6 / 10)
	band1End = 2 * (GridCells * 9 / 10)
	band2End = 2 * (GridCells * 99 / 100)
)

// Fields of an entry of ClassCounts: predictions and correct labelled rows, and how much their Σw exceeds 1 a row.
// This excess is modulo 2^64: rows·2^32 + excess is the exact Σw, which fits even if the excess alone does not.
const (
	ccSeen = iota
	ccSeenExcess
	ccRight
	ccRightExcess
)

// ClassCounts counts rows by the class that the model says, ŷ, and the band of its confidence: all predictions, and of
// the labelled rows the correct ones; the others it counts by (ŷ, band, label). That is the confusion matrix of the
// labelled rows beside the predicted-class shares of all rows: what label-shift estimation needs (calib/shift).
//
// All is sparse. Of the pairs ((ŷ, band), label ≠ ŷ), of which there are up to Bands·K·(K-1), it keeps the MaxPairs
// with the least hash of the pair: those have exact counts, whatever the order and the split of the rows, since a pair
// that is among the least of all is among the least of any part. Truncated says whether there were more. Counts of
// predictions and of correct rows are always exact. Make it with NewClassCounts; the zero value only decodes.
type ClassCounts struct {
	k                    int
	n, w                 int64 // predictions
	labelled, labelledW  int64 // labelled rows
	cells                table[uint32]
	wrong                pairs
	rightRows, wrongRows int64 // of the labelled; wrongRows counts those of pairs that are not kept too
	buffer               classBuffer
}

// NewClassCounts returns an empty accumulator of k classes, 2 to MaxClasses, else ErrShape.
func NewClassCounts(k int) (*ClassCounts, error) {
	if k < 2 || k > MaxClasses {
		return nil, fmt.Errorf("classes is %d, allowed 2 to %d: %w", k, MaxClasses, ErrShape)
	}
	c := &ClassCounts{k: k}
	c.cells.space = k * Bands
	c.wrong.limit = noLimit
	return c, nil
}

// BandOf returns the band of a confidence in [0, 1], 0 to Bands-1.
func BandOf(conf float64) int { return int(bandOf(uint32(cellOf(clamp(conf))))) }

// bandOf returns the band of a cell of the grid: the number of band ends below it. It has no branch, because bands
// come in no predictable order.
func bandOf(cell uint32) uint32 {
	return (band0End-cell)>>31 + (band1End-cell)>>31 + (band2End-cell)>>31
}

// symbol is the key of a cell: the predicted class and the confidence band.
func symbol(r *kernel.Row) uint32 { return uint32(r.Arg*Bands + BandOf(r.Conf)) }

// Predict adds a prediction of class arg with confidence conf.
func (c *ClassCounts) Predict(arg int, conf, w float64) error {
	wf, err := c.checkRow(arg, conf, w, c.n, c.w)
	if err != nil {
		return err
	}
	c.predict(uint32(arg*Bands+BandOf(conf)), wf)
	return nil
}

// Label adds a labelled row of label y for which the model predicts arg with confidence conf.
func (c *ClassCounts) Label(arg int, conf float64, y int, w float64) error {
	wf, err := c.checkRow(arg, conf, w, c.labelled, c.labelledW)
	if err != nil {
		return err
	}
	if y < 0 || y >= c.k {
		return fmt.Errorf("label is %d, allowed 0 to %d: %w", y, c.k-1, ErrValue)
	}
	c.label(uint32(arg*Bands+BandOf(conf)), y, wf)
	return nil
}

func (c *ClassCounts) checkRow(arg int, conf, w float64, n0, w0 int64) (wf int64, err error) {
	if arg < 0 || arg >= c.k {
		return 0, fmt.Errorf("predicted class is %d, allowed 0 to %d: %w", arg, c.k-1, ErrValue)
	}
	if err := checkUnit("confidence", conf); err != nil {
		return 0, err
	}
	if err := checkWeight(w); err != nil {
		return 0, err
	}
	wf = fix(w)
	return wf, checkRoom(n0, w0, 1, wf)
}

// predict is Predict after the checks.
func (c *ClassCounts) predict(sym uint32, wf int64) {
	e := c.cells.at(sym)
	e[ccSeen]++
	e[ccSeenExcess] += wf - fixOne
	c.n++
	c.w += wf
}

// label is Label after the checks.
func (c *ClassCounts) label(sym uint32, y int, wf int64) {
	c.labelled++
	c.labelledW += wf
	if int(sym/Bands) == y {
		e := c.cells.at(sym)
		e[ccRight]++
		e[ccRightExcess] += wf - fixOne
		c.rightRows++
		return
	}
	c.wrongRows++
	c.wrong.add(c.pair(sym, y), pairSum{1, wf - fixOne})
}

// pair is the key of a wrong row.
func (c *ClassCounts) pair(sym uint32, y int) uint64 { return uint64(sym)*uint64(c.k) + uint64(y) }

// Classes returns K.
func (c *ClassCounts) Classes() int { return c.k }

// Total returns the number of predictions and their Σw.
func (c *ClassCounts) Total() (n int64, w float64) { return c.n, unfix(c.w) }

// LabelledTotal returns the number of labelled rows and their Σw.
func (c *ClassCounts) LabelledTotal() (n int64, w float64) { return c.labelled, unfix(c.labelledW) }

// Truncated reports whether wrong rows had more than MaxPairs pairs, so that Pairs lacks some.
func (c *ClassCounts) Truncated() bool {
	c.fold()
	c.wrong.trim()
	return c.wrong.rows() < c.wrongRows
}

func (c *ClassCounts) empty() bool { return c.n == 0 && c.labelled == 0 }

// ClassCell has the rows for which the model predicts Class with a confidence in Band.
type ClassCell struct {
	Class, Band int
	Seen, Right Count // predictions; labelled rows whose label is Class
}

// Count is a number of rows and their Σw.
type Count struct {
	N int64
	W float64
}

// count makes a Count of rows and excess.
func count(n, excess int64) Count { return Count{n, unfix(n<<fixBits + excess)} }

// Cells yields the cells that have predictions or correct labelled rows, in ascending order of class, then band.
func (c *ClassCounts) Cells() iter.Seq[ClassCell] {
	return func(yield func(ClassCell) bool) {
		c.fold()
		o := c.cells.sorted()
		for i, key := range o.keys {
			e := o.nth(i)
			cell := ClassCell{int(key / Bands), int(key % Bands), count(e[ccSeen], e[ccSeenExcess]),
				count(e[ccRight], e[ccRightExcess])}
			if !yield(cell) {
				return
			}
		}
	}
}

// ClassPair has the labelled rows of label Label for which the model predicts Class with a confidence in Band.
type ClassPair struct {
	Class, Band, Label int
	Count
}

// Pairs yields the wrong labelled rows by pair, in ascending order of class, band, label; at most MaxPairs (see
// Truncated).
func (c *ClassCounts) Pairs() iter.Seq[ClassPair] {
	return func(yield func(ClassPair) bool) {
		c.fold()
		c.wrong.trim()
		for _, i := range c.wrong.sorted() {
			key, s := c.wrong.keys[i], c.wrong.sums[i]
			sym := int(key / uint64(c.k))
			if !yield(ClassPair{sym / Bands, sym % Bands, int(key % uint64(c.k)), count(s.n, s.excess)}) {
				return
			}
		}
	}
}

// Merge adds the rows of o, which stays as it is. Another K is ErrShape.
func (c *ClassCounts) Merge(o *ClassCounts) error {
	if err := c.check(o); err != nil {
		return err
	}
	c.merge(o)
	return nil
}

func (c *ClassCounts) check(o *ClassCounts) error {
	if c.k != o.k {
		return fmt.Errorf("merge counts of %d classes into %d: %w", o.k, c.k, ErrShape)
	}
	if err := checkRoom(c.n, c.w, o.n, o.w); err != nil {
		return err
	}
	return checkRoom(c.labelled, c.labelledW, o.labelled, o.labelledW)
}

func (c *ClassCounts) merge(o *ClassCounts) {
	c.fold()
	o.fold()
	n, w, ln, lw, right, wrong := o.n, o.w, o.labelled, o.labelledW, o.rightRows, o.wrongRows // o may be c
	c.cells.add(&o.cells)
	c.wrong.merge(&o.wrong)
	c.n, c.w = c.n+n, c.w+w
	c.labelled, c.labelledW = c.labelled+ln, c.labelledW+lw
	c.rightRows, c.wrongRows = c.rightRows+right, c.wrongRows+wrong
}

// Reset empties the accumulator and keeps its memory.
func (c *ClassCounts) Reset() {
	c.cells.reset()
	c.wrong.reset()
	c.buffer.reset()
	c.n, c.w, c.labelled, c.labelledW, c.rightRows, c.wrongRows = 0, 0, 0, 0, 0, 0
}

// Clone returns a deep copy.
func (c *ClassCounts) Clone() *ClassCounts {
	c.fold()
	d := *c
	d.cells, d.wrong, d.buffer = c.cells.clone(), c.wrong.clone(), classBuffer{}
	return &d
}

const classCountsVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint K, the total of predictions, the total of labelled rows,
// uvarint n, n cells, uvarint m ≤ [MaxPairs], m pairs, both in ascending order of their keys.
//
//   - Cell: key = symbol (uvarint, difference), the total of predictions, the total of labelled rows whose label is the
//     class.
//   - Pair: key = symbol·K + label, label ≠ class (uvarint, difference), the total of labelled rows, N ≥ 1. Of more
//     pairs those with the least SplitMix64 hash of the key are kept, which is exact under merging.
func (c *ClassCounts) AppendBinary(b []byte) ([]byte, error) {
	c.fold()
	b = append(b, classCountsVersion)
	b = binenc.AppendUvarint(b, uint64(c.k))
	b = appendTotal(b, c.n, c.w)
	b = appendTotal(b, c.labelled, c.labelledW)
	b = binenc.AppendUvarint(b, uint64(len(c.cells.keys)))
	prev := uint32(0)
	o := c.cells.sorted()
	for i, key := range o.keys {
		e := o.nth(i)
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

// readPairs reads the pairs; all wrong rows together weigh leftW. The pairs may have fewer rows than there are wrong
// rows only if there are MaxPairs pairs.
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
