package acc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/internal/binenc"
)

// append appends the summary; nothing where it has no rows (docs/format.md, Summary).
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
	totals, err := totalsOf(data)
	if err != nil {
		return fmt.Errorf("unpack a summary: %w", err)
	}
	if err := s.fits(totals); err != nil {
		return fmt.Errorf("unpack a summary: %w", err)
	}
	r := binenc.NewReader(data)
	parts := r.Byte()
	readTotal(&r)
	readTotal(&r)
	if parts == 0 || parts > hasSeen|hasLabelled|hasClasses {
		r.Failf("parts is %d", parts)
	}
	if parts&hasLabelled != 0 {
		err = s.readLabelled(&r, totals[1], parts&hasSeen != 0)
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
	if err != nil {
		return fmt.Errorf("unpack a summary: %w", err)
	}
	return nil
}

func (s *Summary) readLabelled(r *binenc.Reader, total rowTotal, seen bool) error {
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
	s.labelled.read(r, func(key uint16, e entry) {
		if seen {
			s.seen.add(key&^1, e)
		}
	})
	if got := (rowTotal{s.labelled.n - before.n, s.labelled.w - before.w}); got != total && r.Err() == nil {
		r.Failf("a grid of %d rows, not %d", got.n, total.n)
	}
	s.served.read(r, func(uint16, entry) {})
	s.readSoft(r, &scores)
	s.readClassWise(r, total)
	return r.Err()
}

// append appends a grid of positive sums: how many entries, and whether all weights are 1; of each the key, N, Σw if
// not, Σ w·c.
func (g *summaryGrid) append(dst []byte) []byte {
	n, plain := 0, true
	for key := range g.keys {
		e := &g.sums[key]
		n, plain = n+1, plain && e[gW] == e[gN]<<fixBits
	}
	dst = append(binenc.AppendUvarint(dst, uint64(n)), binenc.Flags(plain))
	prev := uint16(0)
	for key := range g.keys {
		e := &g.sums[key]
		dst = binenc.AppendUvarint(dst, uint64(key-prev))
		dst = binenc.AppendUvarint(dst, uint64(e[gN]))
		if !plain {
			dst = binenc.AppendVarint(dst, e[gW]-e[gN]<<fixBits)
		}
		dst = binenc.AppendVarint(dst, e[gWC]-predictWC(int(key/2), e[gW]))
		prev = key
	}
	return dst
}

func (g *summaryGrid) read(r *binenc.Reader, also func(key uint16, e entry)) {
	const entryBytes = 3
	n, plain, key := r.Count(entryBytes, gridKeys), r.Byte() == 1, int64(0)
	for i := range n {
		if key += r.Int("key", int64(min(i, 1)), gridKeys-1); key >= gridKeys {
			r.Failf("key is %d, allowed below %d", key, gridKeys)
		}
		var e entry
		e[gN] = r.Int("rows", 1, math.MaxInt64)
		if e[gW] = e[gN] << fixBits; !plain {
			e[gW] += r.Varint()
		}
		rest := r.Varint()
		if r.Err() == nil && checkRoom(g.n, g.w, e[gN], e[gW]) != nil || e[gW] < 0 {
			r.Failf("%d rows too many", e[gN])
		}
		if r.Err() != nil {
			return
		}
		e[gWC] = rest + predictWC(int(key/2), e[gW])
		g.add(uint16(key), e)
		also(uint16(key), e)
	}
}

// appendSeen appends what the predictions have more than the labelled rows, which are most of them once labels have
// come. A difference may be negative.
func (s *Summary) appendSeen(dst []byte) []byte {
	count := s.seen
	n, plain := 0, true
	if s.scores.n > 0 { // a cell of labelled rows has an entry, if only of zeros
		for key := range s.labelled.keys {
			s.seen.at(key &^ 1)
		}
	}
	for key := range count.keys {
		if e := s.unlabelled(key); e != (entry{}) {
			n, plain = n+1, plain && e[gW] == e[gN]<<fixBits
		}
	}
	dst = append(binenc.AppendUvarint(dst, uint64(n)), binenc.Flags(plain))
	prev := uint16(0)
	for key := range count.keys {
		e := s.unlabelled(key)
		if e == (entry{}) {
			continue
		}
		dst = binenc.AppendUvarint(dst, uint64(key-prev)/2)
		dst = binenc.AppendVarint(dst, e[gN])
		if !plain {
			dst = binenc.AppendVarint(dst, e[gW]-e[gN]<<fixBits)
		}
		dst = binenc.AppendVarint(dst, e[gWC]-predictSigned(int(key/2), e[gW]))
		prev = key
	}
	for _, rows := range []*[SummaryBins]int64{&s.margin, &s.negent} {
		for _, n := range rows {
			dst = binenc.AppendUvarint(dst, uint64(n))
		}
	}
	return dst
}

// unlabelled returns the sums of a cell of predictions less those of its labelled rows.
func (s *Summary) unlabelled(key uint16) entry {
	e := s.seen.sums[key]
	if s.labelled.sums == nil {
		return e
	}
	wrong, right := &s.labelled.sums[key], &s.labelled.sums[key|1]
	for j := range e {
		e[j] -= wrong[j] + right[j]
	}
	return e
}

func predictSigned(cell int, w int64) int64 {
	if w < 0 {
		return -predictWC(cell, -w)
	}
	return predictWC(cell, w)
}

func (s *Summary) readSeen(r *binenc.Reader, total rowTotal) {
	const entryBytes = 3
	n, plain, key := r.Count(entryBytes, cellCount), r.Byte() == 1, int64(0)
	for i := range n {
		if key += 2 * r.Int("cell", int64(min(i, 1)), cellCount-1); key >= gridKeys {
			r.Failf("key is %d, allowed below %d", key, gridKeys)
		}
		var e entry
		e[gN] = r.Varint()
		if e[gW] = e[gN] << fixBits; !plain {
			e[gW] += r.Varint()
		}
		rest := r.Varint()
		if r.Err() != nil {
			return
		}
		e[gWC] = rest + predictSigned(int(key/2), e[gW])
		s.seen.add(uint16(key), e)
	}
	for _, rows := range []*[SummaryBins]int64{&s.margin, &s.negent} {
		for i := range rows {
			rows[i] += r.Int("rows of a bin", 0, total.n)
		}
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
