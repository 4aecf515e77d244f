package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Fields of a grid entry: rows, Σw, Σ w·c and Σ w·c².
const (
	gN = iota
	gW
	gWC
	gWC2
)

// Grid is the confidence grid of one confidence score function with values in [0,1]: by cell and outcome the
// rows, Σw, Σ w·c and Σ w·c². The zero value is empty and ready for use.
//
// The cell is chosen from the exact float64; only the sums are rounded. Σ w·c of n rows may therefore lie up to
// n·2^-33 outside Σw times the cell's interval: a reader that needs mean confidences inside it must clamp.
type Grid struct {
	t      table[uint16] // key 2·cell + outcome, below gridKeys
	n, w   int64         // totals over t. Invariant: every sum in t is at most w, every count at most n.
	groups *cellGroups   // of a Summary: the cells are those that stand for groups
}

const gridKeys = 2 * cellCount

// Add adds a row of confidence c and weight w; correct is its outcome, false where it has none yet.
func (g *Grid) Add(c, w float64, correct bool) error {
	if err := checkUnit("confidence", c); err != nil {
		return err
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	wf := fix(w)
	if err := checkRoom(g.n, g.w, 1, wf); err != nil {
		return err
	}
	g.add(c, w, wf, correct)
	return nil
}

// add is Add after the checks; wf is fix(w).
func (g *Grid) add(c, w float64, wf int64, correct bool) {
	key := 2 * cellOf(c)
	if correct {
		key++
	}
	wc := w * c
	g.t.space = gridKeys
	e := g.t.at(uint16(key))
	e[gN]++
	e[gW] += wf
	e[gWC] += fix(wc)
	e[gWC2] += fix(wc * c)
	g.n++
	g.w += wf
}

// Merge adds the rows of o, which stays as it is.
func (g *Grid) Merge(o *Grid) error {
	if err := g.check(o); err != nil {
		return err
	}
	g.merge(o)
	return nil
}

func (g *Grid) check(o *Grid) error { return checkRoom(g.n, g.w, o.n, o.w) }

func (g *Grid) merge(o *Grid) {
	n, w := o.n, o.w
	g.t.space = gridKeys
	g.t.add(&o.t)
	g.n += n
	g.w += w
}

// Reset empties the grid and keeps its capacity.
func (g *Grid) Reset() {
	g.t.reset()
	g.n, g.w = 0, 0
}

// Clone returns a deep copy.
func (g *Grid) Clone() *Grid { return &Grid{g.t.clone(), g.n, g.w, g.groups} }

const gridVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint n, n entries in ascending order of their keys:
//
//	key = 2·cell + outcome (1 correct, 0 wrong or unlabelled)   uvarint, difference from the key before
//	N ≥ 1                                                       uvarint
//	Σw                                                          varint Σw − N·2³²
//	Σ w·c                                                       varint Σ w·c − ⌊Σw · min(cell, 7200) / 7200⌋
//	Σ w·c²                                                      varint Σ w·c² − ⌊(Σ w·c)² / Σw⌋ (− 0 where Σw = 0)
//
// ⌊·⌋ is exact, in 128 bits. Cells, by their confidences:
//
//	2j, j = 0 … 3599          exactly the float64 j/3600
//	2j + 1, j = 0 … 3598      the open interval (j/3600, (j+1)/3600)
//	7199 + i, i = 0 … 63      above 3599/3600 with 1 − c in (2^(−(i+1)/2)/3600, 2^(−i/2)/3600]; i = 63 down to 0, open
//	7263                      exactly 1
func (g *Grid) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, gridVersion)
	b = binenc.AppendUvarint(b, uint64(len(g.t.keys)))
	prev := uint16(0)
	o := g.t.sorted()
	for i, k := range o.keys {
		e := o.nth(i)
		b = binenc.AppendUvarint(b, uint64(k-prev))
		b = binenc.AppendUvarint(b, uint64(e[gN]))
		b = binenc.AppendVarint(b, e[gW]-e[gN]<<fixBits)
		b = binenc.AppendVarint(b, e[gWC]-predictWC(int(k/2), e[gW]))
		b = binenc.AppendVarint(b, e[gWC2]-mulDiv(e[gWC], e[gWC], e[gW]))
		prev = k
	}
	return b, nil
}

// predictWC is what the codec takes off Σ w·c: Σw times about the middle of the cell.
func predictWC(cell int, w int64) int64 {
	const most = math.MaxInt64 / (2 * GridCells)
	cell = min(cell, 2*GridCells)
	if w <= most { // a division by a constant is none
		return w * int64(cell) / (2 * GridCells)
	}
	return mulDiv(w, int64(cell), 2*GridCells)
}

// UnmarshalBinary replaces the contents by the encoded ones; after an error they are as they were.
func (g *Grid) UnmarshalBinary(data []byte) error { return replace(g, data) }

// decode decodes into a new grid.
func (g *Grid) decode(data []byte, d *Decoder) error {
	r := binenc.NewReader(data)
	g.read(&r, d)
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode grid: %w", err)
	}
	return nil
}

func (g *Grid) read(r *binenc.Reader, d *Decoder) {
	r.Version(gridVersion)
	const entryBytes = 5
	g.t.space = gridKeys
	key := int64(-1)
	count := r.Count(entryBytes, gridKeys)
	g.t.keys, g.t.ents = d.keys.take(count), d.entries.take(count)
	for i := range count {
		if key < 0 {
			key = r.Int("key", 0, gridKeys-1)
		} else {
			key += r.Int("key step", 1, gridKeys-1)
		}
		if key >= gridKeys {
			r.Failf("key is %d, allowed below %d", key, gridKeys)
			return
		}
		var e entry
		e[gN] = r.Int("rows", 1, math.MaxInt64)
		e[gW] = r.Varint() + e[gN]<<fixBits
		if e[gW] >= 0 {
			e[gWC] = r.Varint() + predictWC(int(key/2), e[gW])
		}
		if e[gWC] >= 0 && e[gWC] <= e[gW] {
			e[gWC2] = r.Varint() + mulDiv(e[gWC], e[gWC], e[gW])
		}
		if e[gW] < 0 || e[gWC] < 0 || e[gWC] > e[gW] || e[gWC2] < 0 || e[gWC2] > e[gWC] {
			r.Failf("sums %v of key %d are not of confidences in [0,1]", e, key)
			return
		}
		if err := checkRoom(g.n, g.w, e[gN], e[gW]); err != nil {
			r.Failf("key %d: %v", key, err)
			return
		}
		if r.Err() != nil {
			return
		}
		g.t.keys[i], g.t.ents[i] = uint16(key), e
		g.n += e[gN]
		g.w += e[gW]
	}
}
