package acc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/internal/binenc"
)

// isFine, beside which parts there are, marks what a fine summary has packed.
const isFine = 1 << 7

// append appends the summary, nothing where it has no rows: u8 parts as in [Set], the total of predictions, the
// total of labelled rows; of labelled rows the blocks of Scores and Lag, grids msp and served, soft bins,
// class-wise bins; of predictions the cells; block(ClassCounts).
//
// A grid has uvarint n, u8 1 where all weights are 1, and n entries as in [Grid] without Σ w·c², and without Σw
// where all weights are 1. Σ w·c is that of all entries, by outcome, between two edges of 30 bins or fewer, at the
// first of them; parts & 128: each entry has its own. The cells of predictions are what they have more than the
// labelled rows, signed, then Σ w·c of all, then twice uvarint which of 60 bins have rows, uvarint rows: margin,
// negent. Soft bins: uvarint wrong and correct Σ w·u; Σ w·u·c and Σ w·u·c² as differences from what the sums before
// say. Class-wise: K varint gaps Σ w·(p − hit) of bin 0, then by key Σw turned by 32 and the gap.
func (s *Summary) append(dst []byte) ([]byte, error) {
	var parts byte
	if s.seen.n > 0 {
		parts |= hasSeen
	}
	if s.scores.n > 0 {
		parts |= hasLabelled
	}
	if s.classes != nil && !s.classes.empty() {
		parts |= hasClasses
	}
	if parts == 0 {
		return dst, nil
	}
	if s.fine {
		parts |= isFine
	}
	dst = append(dst, parts)
	dst = appendTotal(appendTotal(dst, s.seen.n, s.seen.w), s.scores.n, s.scores.w)
	var err error
	if parts&hasLabelled != 0 {
		if dst, err = appendParts(dst, &s.scores, &s.lag); err != nil {
			return dst, err
		}
		dst = s.served.append(s.labelled.append(dst))
		dst = s.appendClassWise(s.appendSoft(dst))
	}
	if parts&hasSeen != 0 {
		dst = s.appendSeen(dst)
	}
	if parts&hasClasses != 0 {
		return binenc.AppendBlock(dst, s.classes.AppendBinary)
	}
	return dst, nil
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

func (s *Summary) readParts(data []byte, totals [2]rowTotal) (err error) {
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
		err = s.readLabelled(&r, totals[1], fine)
	}
	if parts&hasSeen != 0 && err == nil && r.Err() == nil {
		s.readSeen(&r, totals[0])
	}
	if parts&hasClasses != 0 && err == nil {
		err = s.readClasses(&r)
	}
	if err == nil {
		err = r.Close()
	}
	return err
}

func (s *Summary) readLabelled(r *binenc.Reader, total rowTotal, fine bool) error {
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
	before := rowTotal{s.labelled.n, s.labelled.w}
	s.cells[0] = s.labelled.read(r, fine, s.cells[0])
	if got := (rowTotal{s.labelled.n - before.n, s.labelled.w - before.w}); got != total && r.Err() == nil {
		r.Failf("a grid of %d rows, not %d", got.n, total.n)
	}
	s.cells[1] = s.served.read(r, fine, s.cells[1])
	s.readSoft(r, &scores)
	s.readClassWise(r, total)
	return r.Err()
}

// append appends a grid of positive sums: how many entries, and whether all weights are 1; of each the key, N, Σw if
// not, and of the first of a part Σ w·c of the part.
func (g *summaryGrid) append(dst []byte) []byte {
	n, plain := 0, true
	for key := range g.keys {
		e := &g.sums[key]
		n, plain = n+1, plain && e[gW] == e[gN]<<fixBits
	}
	dst = append(binenc.AppendUvarint(dst, uint64(n)), binenc.Flags(plain))
	prev, last := uint16(0), noParts
	for key := range g.keys {
		e := &g.sums[key]
		dst = binenc.AppendUvarint(dst, uint64(key-prev))
		dst = binenc.AppendUvarint(dst, uint64(e[gN]))
		if !plain {
			dst = binenc.AppendVarint(dst, e[gW]-e[gN]<<fixBits)
		}
		if part := g.portion(key); last.enters(part) {
			dst = binenc.AppendVarint(dst, g.conf[part]-predictWC(int(key/2), e[gW]))
		}
		prev = key
	}
	return dst
}

// cellRows are rows of a cell.
type cellRows struct {
	cell uint16
	rowTotal
}

// read adds what append wrote. It returns the rows by cell, in the memory of cells.
func (g *summaryGrid) read(r *binenc.Reader, fine bool, cells []cellRows) []cellRows {
	const entryBytes = 2
	n, plain, key := r.Count(entryBytes, gridKeys), r.Byte() == 1, int64(0)
	cells = cells[:0]
	last := noParts
	for i := range n {
		if key += r.Int("key", int64(min(i, 1)), gridKeys-1); key >= gridKeys {
			r.Failf("key is %d, allowed below %d", key, gridKeys)
			return cells
		}
		var e entry
		e[gN] = r.Int("rows", 1, math.MaxInt64)
		if e[gW] = e[gN] << fixBits; !plain {
			e[gW] += r.Varint()
		}
		if r.Err() == nil && checkRoom(g.n, g.w, e[gN], e[gW]) != nil || e[gW] < 0 {
			r.Failf("%d rows too many", e[gN])
		}
		if r.Err() != nil {
			return cells
		}
		if fine || last.enters(g.portion(uint16(key))) {
			e[gWC] = r.Varint() + predictWC(int(key/2), e[gW])
		}
		g.add(uint16(key), &e)
		if m := len(cells); m > 0 && cells[m-1].cell == uint16(key/2) {
			cells[m-1].n, cells[m-1].w = cells[m-1].n+e[gN], cells[m-1].w+e[gW]
		} else {
			cells = append(cells, cellRows{uint16(key / 2), rowTotal{e[gN], e[gW]}})
		}
	}
	return cells
}

// appendSeen appends by cell what the predictions have more than the labelled rows, which are most of them once labels
// have come; a difference may be negative. Then comes Σ w·c of the cells.
func (s *Summary) appendSeen(dst []byte) []byte {
	n, plain := 0, true
	if s.scores.n > 0 { // a cell of labelled rows has an entry, if only of zeros
		for key := range s.labelled.keys {
			s.seen.at(key &^ 1)
		}
	}
	for key := range s.seen.keys {
		if t := s.unlabelled(key); t != (rowTotal{}) {
			n, plain = n+1, plain && t.w == t.n<<fixBits
		}
	}
	dst = append(binenc.AppendUvarint(dst, uint64(n)), binenc.Flags(plain))
	prev := uint16(0)
	for key := range s.seen.keys {
		t := s.unlabelled(key)
		if t == (rowTotal{}) {
			continue
		}
		dst = binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(key-prev)/2), t.n)
		if !plain {
			dst = binenc.AppendVarint(dst, t.w-t.n<<fixBits)
		}
		prev = key
	}
	for key := range s.seen.keys {
		if e := &s.seen.sums[key]; e[gN] != 0 {
			dst = binenc.AppendVarint(dst, e[gWC]-predictWC(int(key/2), e[gW]))
		}
	}
	return appendRows(appendRows(dst, &s.margin), &s.negent)
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
func (s *Summary) readSeen(r *binenc.Reader, total rowTotal) {
	const entryBytes = 2
	n, plain, cell := r.Count(entryBytes, cellCount), r.Byte() == 1, int64(0)
	more := s.cells[1][:0]
	for i := range n {
		if cell += r.Int("cell", int64(min(i, 1)), cellCount-1); cell >= cellCount {
			r.Failf("cell is %d, allowed below %d", cell, cellCount)
		}
		t := rowTotal{n: r.Varint()}
		if t.w = t.n << fixBits; !plain {
			t.w += r.Varint()
		}
		if r.Err() != nil {
			return
		}
		more = append(more, cellRows{uint16(cell), t})
	}
	s.cells[1] = more
	for at := s.cells[0]; len(at)+len(more) > 0; {
		c := cellRows{cell: cellCount}
		if len(at) > 0 {
			c = at[0]
		}
		switch {
		case len(more) == 0 || c.cell < more[0].cell:
			at = at[1:]
		case c.cell > more[0].cell:
			c, more = more[0], more[1:]
		default:
			c.n, c.w = c.n+more[0].n, c.w+more[0].w
			at, more = at[1:], more[1:]
		}
		if !s.readCell(r, c, total) {
			return
		}
	}
	readRows(r, &s.margin, total)
	readRows(r, &s.negent, total)
}

// readCell adds the predictions of a cell, of which Σ w·c follows if there are any.
func (s *Summary) readCell(r *binenc.Reader, c cellRows, total rowTotal) bool {
	if c.rowTotal == (rowTotal{}) {
		return true
	}
	if c.n <= 0 || c.n > total.n || c.w < 0 || c.w > total.w {
		r.Failf("%d predictions in cell %d", c.n, c.cell)
		return false
	}
	e := entry{gN: c.n, gW: c.w, gWC: r.Varint() + predictWC(int(c.cell), c.w)}
	if r.Err() != nil {
		return false
	}
	s.seen.add(2*c.cell, &e)
	return true
}

// appendRows appends which bins have rows, a bit each, and their rows.
func appendRows(dst []byte, rows *[SummaryBins]int64) []byte {
	var some uint64
	for i, n := range rows {
		if n != 0 {
			some |= 1 << i
		}
	}
	dst = binenc.AppendUvarint(dst, some)
	for _, n := range rows {
		if n != 0 {
			dst = binenc.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

func readRows(r *binenc.Reader, rows *[SummaryBins]int64, total rowTotal) {
	some := r.Uvarint()
	for i := range rows {
		if some>>i&1 != 0 {
			rows[i] += r.Int("rows of a bin", 1, total.n)
		}
	}
	if some>>SummaryBins != 0 {
		r.Failf("bins are %x", some)
	}
}

func (s *Summary) readClasses(r *binenc.Reader) error {
	body := r.Bytes(r.Len())
	if r.Err() != nil {
		return r.Err()
	}
	c := &ClassCounts{}
	err := c.UnmarshalBinary(body)
	switch {
	case err != nil:
		return err
	case c.k != s.cfg.K:
		return fmt.Errorf("counts of %d classes, not %d: %w", c.k, s.cfg.K, ErrCorrupt)
	case s.classes == nil:
		s.classes = c
		return nil
	}
	return s.classes.Merge(c)
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

// appendClassWise appends the gap of each class's bin 0, then Σw and the gap of the other bins.
func (s *Summary) appendClassWise(dst []byte) []byte {
	c := s.class
	for _, v := range c.dense {
		dst = binenc.AppendVarint(dst, v)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(c.t.keys)))
	prev := uint32(0)
	for i, key := range c.t.sorted() {
		e := c.t.nth(i, key)
		dst = binenc.AppendUvarint(dst, uint64(key-prev))
		dst = binenc.AppendUvarint(dst, bits.RotateLeft64(uint64(e[cW]), fixBits))
		dst = binenc.AppendVarint(dst, e[cWP])
		prev = key
	}
	return dst
}

func (s *Summary) readClassWise(r *binenc.Reader, total rowTotal) {
	c := s.class
	if r.Len() < len(c.dense) {
		r.Failf("%d bytes for %d classes", r.Len(), len(c.dense))
		return
	}
	for i := range c.dense {
		c.dense[i] += r.Varint()
	}
	const entryBytes = 3
	limit, key := int64(c.k)*int64(c.m+1), int64(0)
	for i := range r.Count(entryBytes, int(limit)) {
		if key += r.Int("key", int64(min(i, 1)), limit-1); key >= limit {
			r.Failf("key is %d, allowed below %d", key, limit)
		}
		w, gap := int64(bits.RotateLeft64(r.Uvarint(), fixBits)), r.Varint()
		if r.Err() == nil && (w < 0 || w > total.w) {
			r.Failf("weight %d of key %d", w, key)
		}
		if r.Err() != nil {
			return
		}
		e := c.t.at(uint32(key))
		e[cW] += w
		e[cWP] += gap
	}
	c.n, c.w = c.n+total.n, c.w+total.w
}
