package acc

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// isFine, beside which parts there are, marks what a fine summary has packed.
const isFine = 1 << 7

// columns are the numbers of a part of a summary, in memory that is used again.
type columns struct {
	key, n, w, sum []uint64
	parts          []uint16 // whose Σ w·c is in sum
}

// empty forgets the numbers.
func (c *columns) empty() {
	c.key, c.n, c.w, c.sum = c.key[:0], c.n[:0], c.w[:0], c.sum[:0]
}

// rows adds a number of rows and what their Σw has more than 1 a row.
func (c *columns) rows(n uint64, w int64) {
	c.n, c.w = append(c.n, n), append(c.w, binenc.ZigZag(w))
}

// writeRows writes keys and rows, and the Σw only where some weight is not 1.
func (c *columns) writeRows(w *binenc.BitWriter) {
	w.Count(len(c.key))
	weighted := slices.ContainsFunc(c.w, func(x uint64) bool { return x != 0 })
	w.Bits(uint64(binenc.Flags(weighted)), 1)
	w.Column(c.key)
	w.Column(c.n)
	if weighted {
		w.Column(c.w)
	}
}

// readRows reads what writeRows wrote, at most so many keys.
func (c *columns) readRows(r *binenc.BitReader, most int) (n int) {
	n = r.Count(most)
	weighted := r.Bits(1) != 0
	c.key = r.Column(c.key, n)
	c.n = r.Column(c.n, n)
	if c.w = append(c.w[:0], make([]uint64, n)...); weighted {
		c.w = r.Column(c.w, n)
	}
	return n
}

// stepped makes a key of its distance from the one before, which is prev: -1 before the first.
func stepped(r *binenc.BitReader, prev int, step uint64, keys int) int {
	if step >= uint64(keys-1-prev) {
		r.Failf("key is %d after %d, allowed below %d", step, prev, keys)
		return max(prev, 0)
	}
	return prev + 1 + int(step)
}

// append appends the summary, nothing where it has no rows: u8 parts as in [Set], with 128 if it is fine, the total
// of predictions, the total of labelled rows; of labelled rows the blocks of Scores and Lag, and the soft bins: uvarint
// wrong and correct Σ w·u; Σ w·u·c and Σ w·u·c² as differences from what the sums before say. Then come columns
// ([binenc.BitWriter]); where there are rows by key, they have the keys' steps less 1, the rows, and the Σw less the
// rows if a weight is not 1.
//
//   - Labelled rows: the grids msp and served, less a row of each key, then Σ w·c, less Σw at the middles of cells, of
//     all entries by outcome between two edges of 30 bins or fewer; of each entry if it is fine. Class-wise: gaps
//     Σ w·(p − hit) of bin 0 of the K classes, then keys, Σw turned by 32, and gaps but those of the bins of zeros.
//   - Predictions: by cell what they have more rows than the labelled ones, Σ w·c of all cells, less Σw at their
//     middles, rows in 60 bins of margin and of negent.
//   - Classes: predictions, less one, by class and band.
func (s *Summary) append(dst []byte) ([]byte, error) {
	var parts byte
	if s.seen.n > 0 {
		parts |= hasSeen
	}
	if s.scores.n > 0 {
		parts |= hasLabelled
	}
	if s.classes.n > 0 {
		parts |= hasClasses
	}
	if parts == 0 {
		return dst, nil
	}
	if s.fine {
		parts |= isFine
	}
	s.grouped()
	dst = append(dst, parts)
	dst = appendTotal(appendTotal(dst, s.seen.n, s.seen.w), s.scores.n, s.scores.w)
	if parts&hasLabelled != 0 {
		var err error
		if dst, err = appendParts(dst, &s.scores, &s.lag); err != nil {
			return dst, err
		}
		dst = s.appendSoft(dst)
	}
	w := binenc.NewBitWriter(dst)
	if parts&hasLabelled != 0 {
		s.labelled.write(&w, &s.columns)
		s.served.write(&w, &s.columns)
		s.writeClassWise(&w)
	}
	if parts&hasSeen != 0 {
		s.writeSeen(&w)
	}
	if parts&hasClasses != 0 {
		s.writeClasses(&w)
	}
	return w.Close(), nil
}

// totalsOf reads the totals of predictions and labelled rows.
func totalsOf(data []byte) (t [2]rowTotal, err error) {
	if len(data) == 0 {
		return t, nil
	}
	r := binenc.NewReader(data)
	r.Byte()
	t[0].n, t[0].w = readTotal(&r)
	t[1].n, t[1].w = readTotal(&r)
	return t, r.Err()
}

// fits returns ErrOverflow unless there is room for so many predictions and labelled rows.
func (s *Summary) fits(more [2]rowTotal) error {
	for i, have := range []rowTotal{{s.seen.n, s.seen.w}, {s.scores.n, s.scores.w}} {
		if err := checkRoom(have.n+s.room[i].n, have.w+s.room[i].w, more[i].n, more[i].w); err != nil {
			return err
		}
	}
	return nil
}

// unpack adds what append wrote. After an error the summary has no meaning.
func (s *Summary) unpack(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if s.fine && data[0]&isFine == 0 {
		return ErrCoarse
	}
	totals, err := totalsOf(data)
	if err == nil {
		err = s.fits(totals)
	}
	if err == nil {
		err = s.readParts(data, totals)
	}
	if err != nil {
		return fmt.Errorf("unpack a summary: %w", err)
	}
	return nil
}

func (s *Summary) readParts(data []byte, totals [2]rowTotal) error {
	r := binenc.NewReader(data)
	parts := r.Byte()
	fine := parts&isFine != 0
	parts &^= isFine
	s.cells[0] = s.cells[0][:0]
	readTotal(&r)
	readTotal(&r)
	if parts == 0 || parts > hasSeen|hasLabelled|hasClasses {
		r.Failf("parts is %d", parts)
	}
	if parts&hasLabelled != 0 {
		if err := s.readScores(&r, totals[1]); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	in := binenc.NewBitReader(data[r.Offset():])
	if parts&hasLabelled != 0 {
		s.readLabelled(&in, totals[1], fine)
	}
	if parts&hasSeen != 0 && in.Err() == nil {
		s.readSeen(&in, totals[0])
	}
	if parts&hasClasses != 0 && in.Err() == nil {
		s.readClasses(&in)
	}
	return in.Close()
}

// readScores reads the parts that are in bytes: scores, lags and soft bins.
func (s *Summary) readScores(r *binenc.Reader, total rowTotal) error {
	var scores Scores
	var lag Lag
	for _, decode := range []func([]byte, *Decoder) error{scores.decode, lag.decode} {
		if err := readPart(r, decode, nil); err != nil {
			return err
		}
	}
	if scores.n != total.n || scores.w != total.w || lag.n != total.n {
		return fmt.Errorf("%d scores and %d lags of %d rows: %w", scores.n, lag.n, total.n, ErrCorrupt)
	}
	sum, err := s.scores.plus(&scores)
	if err == nil {
		err = s.lag.check(&lag)
	}
	if err != nil {
		return err
	}
	s.scores = sum
	s.lag.merge(&lag)
	s.readSoft(r, &scores)
	return r.Err()
}

func (s *Summary) readLabelled(r *binenc.BitReader, total rowTotal, fine bool) {
	before := rowTotal{s.labelled.n, s.labelled.w}
	s.cells[0] = s.labelled.read(r, fine, &s.columns, s.cells[0])
	if got := (rowTotal{s.labelled.n - before.n, s.labelled.w - before.w}); got != total {
		r.Failf("a grid of %d rows, not %d", got.n, total.n)
	}
	s.cells[1] = s.served.read(r, fine, &s.columns, s.cells[1])
	s.readClassWise(r, total)
}

// write writes a grid of positive sums: its entries, and of each part Σ w·c, less what its cells suggest.
func (g *summaryGrid) write(w *binenc.BitWriter, c *columns) {
	c.empty()
	prev, place, last := -1, [2]int{}, noParts
	for key := range g.keys {
		e := &g.sums[key]
		c.key = append(c.key, uint64(int(key)-prev-1))
		c.rows(uint64(e[gN]-1), e[gW]-e[gN]<<fixBits)
		prev = int(key)
		part := g.portion(key)
		if last.enters(part) {
			place[part&1] = len(c.sum)
			c.sum = append(c.sum, uint64(g.conf[part]))
		}
		c.sum[place[part&1]] -= uint64(predictWC(int(key/2), e[gW]))
	}
	for i, more := range c.sum {
		c.sum[i] = binenc.ZigZag(int64(more))
	}
	c.writeRows(w)
	w.Column(c.sum)
}

// cellRows are rows of a cell.
type cellRows struct {
	cell uint16
	rowTotal
}

// read adds what write wrote. It returns the rows by cell, in the memory of cells.
func (g *summaryGrid) read(r *binenc.BitReader, fine bool, c *columns, cells []cellRows) []cellRows {
	cells = cells[:0]
	prev, last, parts := -1, noParts, c.parts[:0]
	for i := range c.readRows(r, gridKeys) {
		prev = stepped(r, prev, c.key[i], gridKeys)
		key := uint16(prev)
		rows := rowTotal{n: int64(c.n[i]) + 1}
		rows.w = rows.n<<fixBits + binenc.UnZigZag(c.w[i])
		if rows.n < 1 || rows.w < 0 || checkRoom(g.n, g.w, rows.n, rows.w) != nil {
			r.Failf("%d rows of a key", rows.n)
			return cells
		}
		e, part := g.at(key), g.portion(key)
		e[gN], e[gW] = e[gN]+rows.n, e[gW]+rows.w
		g.n, g.w = g.n+rows.n, g.w+rows.w
		g.conf[part] += predictWC(prev/2, rows.w)
		if fine && last.enters(key) || !fine && last.enters(part) {
			parts = append(parts, part)
		}
		if m := len(cells); m > 0 && cells[m-1].cell == key/2 {
			cells[m-1].n, cells[m-1].w = cells[m-1].n+rows.n, cells[m-1].w+rows.w
		} else {
			cells = append(cells, cellRows{key / 2, rows})
		}
	}
	c.parts, c.sum = parts, r.Column(c.sum, len(parts))
	for i, part := range parts {
		g.conf[part] += binenc.UnZigZag(c.sum[i])
	}
	return cells
}

// writeSeen writes by cell what the predictions have more than the labelled rows, which are most of them once labels
// have come; a difference may be negative. Then comes Σ w·c of the cells.
func (s *Summary) writeSeen(w *binenc.BitWriter) {
	c := &s.columns
	c.empty()
	if s.scores.n > 0 { // a cell of labelled rows has an entry, if only of zeros
		for key := range s.labelled.keys {
			s.seen.at(key &^ 1)
		}
	}
	prev := -1
	for key := range s.seen.keys {
		if t := s.unlabelled(key); t != (rowTotal{}) {
			c.key = append(c.key, uint64(int(key/2)-prev-1))
			c.rows(binenc.ZigZag(t.n), t.w-t.n<<fixBits)
			prev = int(key / 2)
		}
		if e := &s.seen.sums[key]; e[gN] != 0 {
			c.sum = append(c.sum, binenc.ZigZag(e[gWC]-predictWC(int(key/2), e[gW])))
		}
	}
	c.writeRows(w)
	w.Column(c.sum)
	for _, rows := range []*[SummaryBins]int64{&s.margin, &s.negent} {
		c.empty()
		for _, n := range rows {
			c.n = append(c.n, uint64(n))
		}
		w.Column(c.n)
	}
}

// unlabelled returns the rows of a cell of predictions less its labelled rows.
func (s *Summary) unlabelled(key uint16) rowTotal {
	e := &s.seen.sums[key]
	t := rowTotal{e[gN], e[gW]}
	if s.labelled.sums != nil {
		wrong, right := &s.labelled.sums[key], &s.labelled.sums[key|1]
		t.n, t.w = t.n-wrong[gN]-right[gN], t.w-wrong[gW]-right[gW]
	}
	return t
}

// readSeen reads the predictions of a part whose labelled rows by cell are s.cells[0].
func (s *Summary) readSeen(r *binenc.BitReader, total rowTotal) {
	c, more, prev := &s.columns, s.cells[1][:0], -1
	for i := range c.readRows(r, cellCount) {
		prev = stepped(r, prev, c.key[i], cellCount)
		t := rowTotal{n: binenc.UnZigZag(c.n[i])}
		t.w = t.n<<fixBits + binenc.UnZigZag(c.w[i])
		more = append(more, cellRows{uint16(prev), t})
	}
	s.cells[1] = more
	s.cells[0], s.cells[2] = s.plusCells(s.cells[0], more), s.cells[0]
	cells, before := s.cells[0], rowTotal{s.seen.n, s.seen.w}
	for _, t := range cells {
		if t.n <= 0 || t.n > total.n || t.w < 0 || t.w > total.w {
			r.Failf("%d predictions in cell %d", t.n, t.cell)
			return
		}
	}
	c.sum = r.Column(c.sum, len(cells))
	for i, t := range cells {
		wc := binenc.UnZigZag(c.sum[i]) + predictWC(int(t.cell), t.w)
		s.seen.add(2*t.cell, &entry{gN: t.n, gW: t.w, gWC: wc})
	}
	if got := (rowTotal{s.seen.n - before.n, s.seen.w - before.w}); got != total {
		r.Failf("cells of %d predictions, not %d", got.n, total.n)
	}
	for _, rows := range []*[SummaryBins]int64{&s.margin, &s.negent} {
		c.n = r.Column(c.n, SummaryBins)
		for i, n := range c.n {
			if n > uint64(total.n) {
				r.Failf("%d rows of a bin", n)
				return
			}
			rows[i] += int64(n)
		}
	}
}

// plusCells adds up rows by cell, both in ascending order, in the memory of s.cells[2], without cells that have none.
func (s *Summary) plusCells(at, more []cellRows) []cellRows {
	sum := s.cells[2][:0]
	for len(at)+len(more) > 0 {
		var t cellRows
		switch {
		case len(more) == 0 || len(at) > 0 && at[0].cell < more[0].cell:
			t, at = at[0], at[1:]
		case len(at) == 0 || at[0].cell > more[0].cell:
			t, more = more[0], more[1:]
		default:
			t = at[0]
			t.n, t.w = t.n+more[0].n, t.w+more[0].w
			at, more = at[1:], more[1:]
		}
		if t.rowTotal != (rowTotal{}) {
			sum = append(sum, t)
		}
	}
	return sum
}

// writeClasses writes the predictions by class and band.
func (s *Summary) writeClasses(w *binenc.BitWriter) {
	c := &s.columns
	c.empty()
	prev := -1
	o := s.classes.cells.sorted()
	for i, key := range o.keys {
		if e := o.nth(i); e[ccSeen] != 0 {
			c.key = append(c.key, uint64(int(key)-prev-1))
			c.rows(uint64(e[ccSeen]-1), e[ccSeenExcess])
			prev = int(key)
		}
	}
	c.writeRows(w)
}

func (s *Summary) readClasses(r *binenc.BitReader) {
	c, to, prev := &s.columns, s.classes, -1
	limit := s.cfg.K * Bands
	for i := range c.readRows(r, limit) {
		prev = stepped(r, prev, c.key[i], limit)
		n, excess := int64(c.n[i])+1, binenc.UnZigZag(c.w[i])
		w := n<<fixBits + excess
		if n < 1 || w < 0 || checkRoom(to.n, to.w, n, w) != nil {
			r.Failf("%d predictions of a class", n)
		}
		if r.Err() != nil {
			return
		}
		e := to.cells.at(uint32(prev))
		e[ccSeen], e[ccSeenExcess] = e[ccSeen]+n, e[ccSeenExcess]+excess
		to.n, to.w = to.n+n, to.w+w
	}
}

// appendSoft appends the soft bins. What a bin's confidences are is foretold from those of all rows.
func (s *Summary) appendSoft(dst []byte) []byte {
	b := s.soft
	for j := range b.m {
		wrong, right, c := b.sums[softWrong][j], b.sums[softCorrect][j], b.sums[softC][j]
		dst = binenc.AppendUvarint(binenc.AppendUvarint(dst, uint64(wrong)), uint64(right))
		dst = binenc.AppendVarint(dst, c-mulDiv(wrong+right, s.scores.wc, s.scores.w))
		dst = binenc.AppendVarint(dst, b.sums[softC2][j]-mulDiv(c, c, wrong+right))
	}
	return dst
}

func (s *Summary) readSoft(r *binenc.Reader, scores *Scores) {
	b := s.soft
	for j := range b.m {
		wrong := r.Int("S of wrong rows", 0, scores.w)
		right := r.Int("S of correct rows", 0, scores.w-wrong)
		c := r.Varint() + mulDiv(wrong+right, scores.wc, scores.w)
		if r.Err() == nil && (c < 0 || c > wrong+right) {
			r.Failf("UC is %d, allowed 0 to %d", c, wrong+right)
		}
		if r.Err() != nil {
			return
		}
		c2 := r.Varint() + mulDiv(c, c, wrong+right)
		b.sums[softWrong][j] += wrong
		b.sums[softCorrect][j] += right
		b.sums[softC][j] += c
		b.sums[softC2][j] += c2
	}
	b.n, b.w = b.n+scores.n, b.w+scores.w
}

// writeClassWise writes the gap of each class's bin 0, then Σw and the gap of the other bins.
func (s *Summary) writeClassWise(w *binenc.BitWriter) {
	t, c := s.class, &s.columns
	c.empty()
	for _, v := range t.dense {
		c.sum = append(c.sum, binenc.ZigZag(v))
	}
	w.Column(c.sum)
	c.empty()
	prev := -1
	o := t.t.sorted()
	for i, key := range o.keys {
		e := o.nth(i)
		c.key = append(c.key, uint64(int(key)-prev-1))
		c.w = append(c.w, bits.RotateLeft64(uint64(e[cW]), fixBits))
		if !t.ofZeros(key) {
			c.sum = append(c.sum, binenc.ZigZag(e[cWP]))
		}
		prev = int(key)
	}
	w.Count(len(c.key))
	w.Column(c.key)
	w.Column(c.w)
	w.Column(c.sum)
}

// ofZeros reports whether a key is of the bin of zeros, which has no gap.
func (c *ClassWise) ofZeros(key uint32) bool { return int(key)%(c.m+1) == c.m }

func (s *Summary) readClassWise(r *binenc.BitReader, total rowTotal) {
	t, c := s.class, &s.columns
	c.sum = r.Column(c.sum, len(t.dense))
	for i, v := range c.sum {
		t.dense[i] += binenc.UnZigZag(v)
	}
	limit, prev, gaps := t.k*(t.m+1), -1, 0
	n := r.Count(limit)
	c.key = r.Column(c.key, n)
	c.w = r.Column(c.w, n)
	for i := range c.key {
		prev = stepped(r, prev, c.key[i], limit)
		if c.key[i] = uint64(prev); !t.ofZeros(uint32(prev)) {
			gaps++
		}
		if w := int64(bits.RotateLeft64(c.w[i], fixBits)); w < 0 || w > total.w {
			r.Failf("weight %d of key %d", w, prev)
		}
	}
	if r.Err() != nil {
		return
	}
	c.sum, gaps = r.Column(c.sum, gaps), 0
	for i, key := range c.key {
		e := t.t.at(uint32(key))
		e[cW] += int64(bits.RotateLeft64(c.w[i], fixBits))
		if !t.ofZeros(uint32(key)) {
			e[cWP] += binenc.UnZigZag(c.sum[gaps])
			gaps++
		}
	}
	t.n, t.w = t.n+total.n, t.w+total.w
}
