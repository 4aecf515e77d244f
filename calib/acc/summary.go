package acc

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/plumbline/plumbline/internal/binenc"
)

// SummaryBins is the number of bins in which a Summary keeps the predictions' margin and negative entropy.
const SummaryBins = 60

// Summary holds of the rows of many sets what windows show: the exact sums of the sets, without those that no window
// reads. These are Σ w·c², the labelled rows by margin, by negative entropy and by class, where the predictions'
// margin and negative entropy lie inside SummaryBins bins, and how the gap of a class-wise bin divides into
// probabilities and hits.
//
// Unless the summary is fine, it has Σ w·c of labelled rows between the edges of CoarseBins bins or fewer only, and of
// more than groupRows rows groups of cells in place of cells. The number of rows alone decides, so parts of many may
// have either.
//
// A summary is where sums are added and read; there is one for many windows. Between, each window has a [Packed], which
// takes a small part of the memory of a set. Make a summary with NewSummary; the zero value only reshapes.
type Summary struct {
	cfg      Config
	fine     bool
	seen     summaryGrid // by cell
	labelled summaryGrid // by cell and outcome
	served   summaryGrid
	margin   [SummaryBins]int64
	negent   [SummaryBins]int64
	soft     *SoftBins
	class    *ClassWise // entries have Σw and the gap Σ w·(p - hit) only; dense has the gaps of bin 0
	scores   Scores
	lag      Lag
	classes  *ClassCounts // predictions only
	room     [2]rowTotal  // predictions and labelled rows that are not here and take room

	read    Set // what Set returns
	scratch []byte
	columns columns
	cells   [3][]cellRows // of the part that is read: labelled rows, what the predictions have more, and both
}

// rowTotal is a number of rows and their Σw.
type rowTotal struct{ n, w int64 }

// NewSummary returns an empty summary of sets of a configuration, whose samples it does not keep. A fine one is for
// reliability diagrams of more than CoarseBins bins.
func NewSummary(cfg Config, fine bool) (*Summary, error) {
	set, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if set.Labelled, err = newLabelled(set.cfg); err != nil {
		return nil, err
	}
	s := &Summary{cfg: set.cfg, fine: fine, read: *set, soft: set.Labelled.Soft, class: set.Labelled.ClassWise}
	if s.classes, err = NewClassCounts(set.cfg.K); err != nil {
		return nil, err
	}
	s.labelled.divide(fine)
	s.served.divide(fine)
	return s, nil
}

// Reshape empties the summary for sets of another configuration, and keeps what memory it can.
func (s *Summary) Reshape(cfg Config, fine bool) error {
	if s.Reset(); cfg.normal() == s.cfg && fine == s.fine {
		return nil
	}
	n, err := NewSummary(cfg, fine)
	if err != nil {
		return err
	}
	n.seen, n.scratch, n.columns, n.cells = s.seen, s.scratch, s.columns, s.cells
	n.labelled.sums, n.labelled.used = s.labelled.sums, s.labelled.used
	n.served.sums, n.served.used = s.served.sums, s.served.used
	*s = *n
	return nil
}

// Reset empties the summary and keeps its memory.
func (s *Summary) Reset() {
	for _, g := range []*summaryGrid{&s.seen, &s.labelled, &s.served} {
		g.reset()
	}
	s.margin, s.negent = [SummaryBins]int64{}, [SummaryBins]int64{}
	if s.soft != nil {
		s.soft.Reset()
		s.class.Reset()
		s.classes.Reset()
	}
	s.scores, s.lag = Scores{}, Lag{}
	s.room = [2]rowTotal{}
}

// Add adds the rows of a set. Another configuration is ErrShape. After an error nothing has changed.
func (s *Summary) Add(o *Set) error {
	if err := s.check(o); err != nil {
		return err
	}
	if err := s.AddSeen(o); err != nil {
		return err
	}
	s.addLabelled(o.Labelled)
	return nil
}

// AddSeen adds the predictions of a set, without its labelled rows. Errors are those of Add.
func (s *Summary) AddSeen(o *Set) error {
	if !s.cfg.Merges(o.cfg) {
		return fmt.Errorf("add set %+v to a summary of %+v: %w", o.cfg, s.cfg, ErrShape)
	}
	if o.Seen != nil {
		if err := s.fits([2]rowTotal{{o.Seen.MSP.n, o.Seen.MSP.w}}); err != nil {
			return err
		}
		s.seen.addGrid(&o.Seen.MSP)
		addBins(&s.margin, &o.Seen.Margin)
		addBins(&s.negent, &o.Seen.NegEnt)
	}
	if o.Classes != nil {
		s.addClasses(o.Classes)
	}
	return nil
}

// addClasses adds the predictions of class counts.
func (s *Summary) addClasses(o *ClassCounts) {
	o.fold()
	c := s.classes
	for i, key := range o.cells.keys {
		if e := &o.cells.ents[i]; e[ccSeen] != 0 {
			d := c.cells.at(key)
			d[ccSeen], d[ccSeenExcess] = d[ccSeen]+e[ccSeen], d[ccSeenExcess]+e[ccSeenExcess]
		}
	}
	c.n, c.w = c.n+o.n, c.w+o.w
}

// AddLabelled adds the labelled rows of a set, without its predictions. Errors are those of Add.
func (s *Summary) AddLabelled(o *Set) error {
	if err := s.check(o); err != nil {
		return err
	}
	s.addLabelled(o.Labelled)
	return nil
}

// check returns the error for which the labelled rows of o must not be added.
func (s *Summary) check(o *Set) error {
	if !s.cfg.Merges(o.cfg) {
		return fmt.Errorf("add set %+v to a summary of %+v: %w", o.cfg, s.cfg, ErrShape)
	}
	l := o.Labelled
	if l == nil {
		return nil
	}
	if err := s.fits([2]rowTotal{1: {l.Scores.n, l.Scores.w}}); err != nil {
		return err
	}
	if err := s.scores.check(&l.Scores); err != nil {
		return err
	}
	return s.lag.check(&l.Lag)
}

func (s *Summary) addLabelled(l *Labelled) {
	if l == nil {
		return
	}
	s.labelled.addGrid(&l.MSP)
	s.served.addGrid(&l.Served)
	s.soft.merge(l.Soft)
	s.scores, _ = s.scores.plus(&l.Scores)
	s.lag.merge(&l.Lag)
	c, m := s.class, uint32(l.ClassWise.m)
	for k, v := range l.ClassWise.dense {
		c.dense[k] += v
	}
	ents := l.ClassWise.t.ents
	for i, key := range l.ClassWise.t.keys {
		e := &ents[i]
		switch bin := key % (m + 1); bin {
		case 0:
			c.dense[key/(m+1)] -= e[cWA]
		case m:
			c.t.at(key)[cW] += e[cW] // the bin of zeros has no gap
		default:
			d := c.t.at(key)
			d[cW] += e[cW]
			d[cWP] += e[cWP] - e[cWA]
		}
	}
	c.n, c.w = c.n+l.ClassWise.n, c.w+l.ClassWise.w
}

// groupRows is the number of rows, predictions or labelled, above which a summary merges cells into groups.
const groupRows = 1000

// grouped reports whether the rows, with those that take room, are by groups, and sees to it.
func (s *Summary) grouped() bool {
	if s.fine || max(s.seen.n+s.room[0].n, s.scores.n+s.room[1].n) <= groupRows {
		return false
	}
	for _, g := range []*summaryGrid{&s.seen, &s.labelled, &s.served} {
		g.group()
	}
	return true
}

// AsSet returns the sums as a set. Of its class-wise bins only ECE is to be read, of its class counts only predictions,
// of its grids not Σ w·c², of Seen.Margin and Seen.NegEnt only the numbers of rows in SummaryBins bins or fewer. Unless
// the summary is fine, its grids are for SummaryBins bins, those of the CDF, and CoarseBins or fewer, and Σ w·c of
// labelled rows for the latter. It is valid until the summary changes.
func (s *Summary) AsSet() *Set {
	out, grouped := &s.read, s.grouped()
	if out.Classes = nil; s.classes.n > 0 {
		out.Classes = s.classes
	}
	if out.Seen = nil; s.seen.n > 0 {
		out.Seen = &Seen{MSP: s.seen.grid(), Margin: gridOfBins(&s.margin), NegEnt: gridOfBins(&s.negent)}
	}
	if out.Labelled = nil; s.scores.n > 0 {
		out.Labelled = &Labelled{MSP: s.labelled.grid(), Served: s.served.grid(), Soft: s.soft, ClassWise: s.class,
			Scores: s.scores, Lag: s.lag, Sample: &Sample{k: s.cfg.K, seed: s.cfg.SampleSeed}}
	}
	if !grouped {
		return out
	}
	if out.Seen != nil {
		out.Seen.MSP.groups = groupsOfCells()
	}
	if out.Labelled != nil {
		out.Labelled.MSP.groups, out.Labelled.Served.groups = groupsOfCells(), groupsOfCells()
	}
	return out
}

// addBins adds the rows of a grid by bin.
func addBins(dst *[SummaryBins]int64, g *Grid) {
	for i, key := range g.t.keys {
		dst[binOf(int(key/2), SummaryBins)] += g.t.ents[i][gN]
	}
}

// gridOfBins returns a grid with the rows of each bin in the first interval of the bin.
func gridOfBins(rows *[SummaryBins]int64) Grid {
	g := Grid{t: table[uint16]{space: gridKeys}}
	for i, n := range rows {
		if n != 0 {
			g.t.keys = append(g.t.keys, uint16(2*(2*(i*GridCells/SummaryBins)+1)))
			g.t.ents = append(g.t.ents, entry{gN: n})
			g.n += n
		}
	}
	return g
}

// CoarseBins is the largest number of bins that every Summary can show.
const CoarseBins = 30

// coarse numbers the parts into which the edges of all allowed numbers of bins up to CoarseBins divide the cells.
var coarse = sync.OnceValue(func() *[cellCount]uint16 {
	parts := new([cellCount]uint16)
	for cell := 1; cell < cellCount; cell++ {
		parts[cell] = parts[cell-1]
		for m := 1; m <= CoarseBins; m++ {
			if GridCells%m == 0 && binOf(cell, m) != binOf(cell-1, m) {
				parts[cell]++
				break
			}
		}
	}
	return parts
})

// each gives every cell a part of its own.
var each = sync.OnceValue(func() *[cellCount]uint16 {
	parts := new([cellCount]uint16)
	for cell := range parts {
		parts[cell] = uint16(cell)
	}
	return parts
})

// summaryGrid is a grid without Σ w·c². Its sums lie at their keys, so that adding costs no search.
type summaryGrid struct {
	n, w int64
	sums []entry // by key; nil before the first row
	used []uint64
	// Where cells have parts, Σ w·c is by part and outcome.
	parts *[cellCount]uint16
	conf  []int64
}

// divide divides the cells of an empty grid into parts.
func (g *summaryGrid) divide(fine bool) {
	if g.parts = coarse(); fine {
		g.parts = each()
	}
	g.conf = make([]int64, 2*int(g.parts[cellCount-1])+2)
}

// portion returns the part of a key: 2·part of its cell + outcome.
func (g *summaryGrid) portion(key uint16) uint16 { return 2*g.parts[key/2] + key&1 }

func (g *summaryGrid) at(key uint16) *entry {
	if g.sums == nil {
		g.sums, g.used = make([]entry, gridKeys), make([]uint64, (gridKeys+63)/64)
	}
	g.used[key/64] |= 1 << (key % 64)
	return &g.sums[key]
}

// add adds to a key. Σ w·c goes to the key's part, if there are parts.
func (g *summaryGrid) add(key uint16, e *entry) {
	d := g.at(key)
	d[gN], d[gW] = d[gN]+e[gN], d[gW]+e[gW]
	if g.parts == nil {
		d[gWC] += e[gWC]
	} else {
		g.conf[g.portion(key)] += e[gWC]
	}
	g.n, g.w = g.n+e[gN], g.w+e[gW]
}

func (g *summaryGrid) addGrid(o *Grid) {
	for i, key := range o.t.keys {
		g.add(key, &o.t.ents[i])
	}
}

// keys yields the keys that have been added to, in ascending order.
func (g *summaryGrid) keys(yield func(uint16) bool) {
	for i, word := range g.used {
		for ; word != 0; word &= word - 1 {
			if !yield(uint16(64*i + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

func (g *summaryGrid) reset() {
	for i, word := range g.used {
		for ; word != 0; word &= word - 1 {
			g.sums[64*i+bits.TrailingZeros64(word)] = entry{}
		}
	}
	clear(g.used)
	clear(g.conf)
	g.n, g.w = 0, 0
}

// group puts the sums of each group of cells into the cell that stands for it.
func (g *summaryGrid) group() {
	groups := groupsOfCells()
	for key := range g.keys {
		to := 2*groups.of[key/2] | key&1
		if to == key {
			continue
		}
		d, e := g.at(to), &g.sums[key]
		for i, x := range e {
			d[i] += x
		}
		*e = entry{}
		g.used[key/64] &^= 1 << (key % 64)
	}
}

// grid returns the sums as a grid, Σ w·c of a part at its first cell.
func (g *summaryGrid) grid() Grid {
	n := 0
	for _, word := range g.used {
		n += bits.OnesCount64(word)
	}
	t, last := table[uint16]{space: gridKeys, keys: make([]uint16, 0, n), ents: make([]entry, 0, n)}, noParts
	for i, word := range g.used {
		for ; word != 0; word &= word - 1 {
			key := uint16(64*i + bits.TrailingZeros64(word))
			e := g.sums[key]
			if e == (entry{}) {
				continue
			}
			if g.parts != nil && last.enters(g.portion(key)) {
				e[gWC] = g.conf[g.portion(key)]
			}
			t.keys, t.ents = append(t.keys, key), append(t.ents, e)
		}
	}
	return Grid{t: t, n: g.n, w: g.w}
}

// lastParts are the parts, by outcome, of the keys so far.
type lastParts [2]int

var noParts = lastParts{-1, -1}

// enters reports whether a part, of keys in ascending order, is a new one.
func (l *lastParts) enters(part uint16) bool {
	if l[part&1] == int(part) {
		return false
	}
	l[part&1] = int(part)
	return true
}

// Packed is a compact Summary. The zero value has no rows. Recent rows are kept apart until they reach the share
// packedShare of the rest, or Summary.Join merges them, so adding a few rows costs little however large the rest is.
type Packed struct{ rest, late []byte }

const packedShare = 4

// Bytes returns the memory that p holds.
func (p *Packed) Bytes() int { return cap(p.rest) + cap(p.late) }

// Late returns the bytes of the recent rows that are kept apart.
func (p *Packed) Late() int { return len(p.late) }

// Empty reports whether p has no rows.
func (p *Packed) Empty() bool { return len(p.rest)+len(p.late) == 0 }

// Equal reports whether p has the same bytes as o.
func (p *Packed) Equal(o *Packed) bool {
	return bytes.Equal(p.rest, o.rest) && bytes.Equal(p.late, o.late)
}

// AppendBinary appends p. Equal additions give equal bytes.
func (p *Packed) AppendBinary(dst []byte) []byte {
	return binenc.AppendBytes(binenc.AppendBytes(dst, p.rest), p.late)
}

// Unpack adds the rows of p to the summary; after ErrOverflow nothing has changed.
func (s *Summary) Unpack(p *Packed) error {
	var sum [2]rowTotal
	for _, data := range [][]byte{p.rest, p.late} {
		t, err := totalsOf(data)
		if err != nil {
			return err
		}
		for i := range sum {
			if err := checkRoom(sum[i].n, sum[i].w, t[i].n, t[i].w); err != nil {
				return err
			}
			sum[i] = rowTotal{sum[i].n + t[i].n, sum[i].w + t[i].w}
		}
	}
	if err := s.fits(sum); err != nil {
		return err
	}
	for _, data := range [][]byte{p.rest, p.late} {
		if err := s.unpack(data); err != nil {
			return err
		}
	}
	return nil
}

// ErrCoarse means that a fine summary cannot read packed sums because a summary that was not fine packed them.
var ErrCoarse = errors.New("sums of coarser bins")

// ReadPacked reads what Packed.AppendBinary wrote, of the same process: it checks nothing.
func ReadPacked(r *binenc.Reader) Packed {
	return Packed{rest: apart(r.Bytes(binenc.MaxBytes)), late: apart(r.Bytes(binenc.MaxBytes))}
}

// apart copies bytes. An empty slice would keep the memory of all that is read, too.
func apart(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

// Restore reads what Packed.AppendBinary wrote, also where it returns ErrCoarse. It checks the bytes, so that unpacking
// them does not fail.
func (s *Summary) Restore(r *binenc.Reader) (Packed, error) {
	p := ReadPacked(r)
	if r.Err() != nil {
		return Packed{}, r.Err()
	}
	s.Reset()
	return p, s.Unpack(&p)
}

// Pack adds what add adds to the summary to p; it empties the summary. A part that has no room is left out, with
// ErrOverflow; after any other error p is as it was.
func (s *Summary) Pack(p *Packed, add func(s *Summary) error) error {
	s.Reset()
	if err := s.unpack(p.late); err != nil {
		return err
	}
	rest, err := totalsOf(p.rest)
	if err != nil {
		return err
	}
	s.room = rest
	over := add(s)
	if over != nil && !errors.Is(over, ErrOverflow) {
		return over
	}
	if s.scratch, err = s.append(s.scratch[:0]); err != nil {
		return err
	}
	if packedShare*len(s.scratch) < len(p.rest) {
		p.late = slices.Clone(s.scratch)
		return over
	}
	s.room = [2]rowTotal{}
	if err := p.join(s); err != nil {
		return err
	}
	return over
}

// Join merges the recent rows of p into the rest. It empties the summary.
func (s *Summary) Join(p *Packed) error {
	if len(p.late) == 0 {
		return nil
	}
	s.Reset()
	if err := s.unpack(p.late); err != nil {
		return err
	}
	s.scratch = append(s.scratch[:0], p.late...)
	return p.join(s)
}

// join makes p of its rest and the rows of the summary, which are in scratch, too.
func (p *Packed) join(s *Summary) (err error) {
	if len(p.rest) > 0 {
		if err := s.unpack(p.rest); err != nil {
			return err
		}
		if s.scratch, err = s.append(s.scratch[:0]); err != nil {
			return err
		}
	}
	p.rest, p.late = slices.Clone(s.scratch), nil
	return nil
}
