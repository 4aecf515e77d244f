package acc

import (
	"fmt"
	"iter"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Bands is the number of confidence bands of ClassCounts: (0, .6], (.6, .9], (.9, .99], (.99, 1].
const Bands = 4

// The last cells of the grid that belong to the bands but the last.
const (
	band0End = 2 * (GridCells * 6 / 10)
	band1End = 2 * (GridCells * 9 / 10)
	band2End = 2 * (GridCells * 99 / 100)
)

// Fields of an entry of ClassCounts: predictions and correct labelled rows, and what their Σw has more than 1 a row.
// The latter is modulo 2^64: rows·2^32 + excess is the exact Σw, which fits, where the excess alone may not.
const (
	ccSeen = iota
	ccSeenExcess
	ccRight
	ccRightExcess
)

// ClassCounts counts rows by the class that the model says, ŷ, and the band of its confidence: all predictions, and of the
// labelled rows the correct ones; the others it counts by (ŷ, band, label). That is the confusion matrix of the labelled
// rows beside the predicted-class shares of all rows: what label-shift estimation needs (calib/shift).
//
// All is sparse. Of the pairs ((ŷ, band), label ≠ ŷ), of which there are up to Bands·K·(K-1), it keeps the MaxPairs with the
// least hash of the pair: those have exact counts, whatever the order and the split of the rows, since a pair that is
// among the least of all is among the least of any part. Truncated says whether there were more. Counts of predictions and
// of correct rows are always exact. Make it with NewClassCounts; the zero value only decodes.
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

// bandOf is the band of a cell of the grid: the number of ends below it, without a branch, as bands come in no order.
func bandOf(cell uint32) uint32 {
	return (band0End-cell)>>31 + (band1End-cell)>>31 + (band2End-cell)>>31
}

// symbol is the key of the cells: what the model says, and how surely.
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

// Label adds a labelled row of label y, of which the model says arg with confidence conf.
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

// Truncated reports whether there were wrong rows of more than MaxPairs pairs, so that Pairs lacks some.
func (c *ClassCounts) Truncated() bool {
	c.fold()
	c.wrong.trim()
	return c.wrong.rows() < c.wrongRows
}

func (c *ClassCounts) empty() bool { return c.n == 0 && c.labelled == 0 }

// ClassCell are the rows of which the model says Class with a confidence in Band.
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
		for _, key := range c.cells.sorted() {
			e := c.cells.get(key)
			cell := ClassCell{int(key / Bands), int(key % Bands), count(e[ccSeen], e[ccSeenExcess]), count(e[ccRight], e[ccRightExcess])}
			if !yield(cell) {
				return
			}
		}
	}
}

// ClassPair are the labelled rows of which the model says Class with a confidence in Band, and whose label is Label.
type ClassPair struct {
	Class, Band, Label int
	Count
}

// Pairs yields the wrong labelled rows by pair, in ascending order of class, band, label; at most MaxPairs (see Truncated).
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

// Halve halves all sums, rounding down (see Halver).
func (c *ClassCounts) Halve() {
	half := func(n, excess *int64) {
		w := (*n<<fixBits + *excess) / 2
		*n /= 2
		*excess = w - *n<<fixBits
	}
	c.fold()
	for i := range c.cells.ents {
		e := &c.cells.ents[i]
		half(&e[ccSeen], &e[ccSeenExcess])
		half(&e[ccRight], &e[ccRightExcess])
	}
	for i := range c.wrong.sums {
		half(&c.wrong.sums[i].n, &c.wrong.sums[i].excess)
	}
	c.n, c.w, c.labelled, c.labelledW = c.n/2, c.w/2, c.labelled/2, c.labelledW/2
	c.rightRows, c.wrongRows = c.rightRows/2, c.wrongRows/2
}
