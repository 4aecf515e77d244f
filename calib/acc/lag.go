package acc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
	"github.com/plumbline/plumbline/internal/binenc"
)

// Cells of a lag histogram: 0 is zero and below, 1 is under a millisecond, then four to an octave from 1 ms.
const (
	lagUnit    = 1_000_000 // ns
	lagPerOct  = 4
	lagOctaves = 44
	lagFirst   = 2
	lagCells   = lagFirst + lagOctaves*lagPerOct
)

// lagQuarter[q] is 1 ms · 2^(q/4) in ns.
var lagQuarter = [lagPerOct + 1]float64{
	lagUnit, lagUnit * math.Sqrt(math.Sqrt2), lagUnit * math.Sqrt2, lagUnit * math.Sqrt2 * math.Sqrt(math.Sqrt2),
	2 * lagUnit,
}

// Lag is a histogram of label delays (label time minus prediction time), with the exact sum. Rows count once, whatever
// their weight. The zero value is empty and ready for use.
type Lag struct {
	n      int64
	sum    i128 // ns
	counts [lagCells]int64
}

// Add adds a row whose label came nanos after its prediction (before, if negative).
func (l *Lag) Add(nanos int64) error {
	if err := l.fits(nanos); err != nil {
		return err
	}
	l.add(nanos)
	return nil
}

// fits returns ErrOverflow where add must not be called.
func (l *Lag) fits(nanos int64) error {
	if l.roomy(1) {
		return nil
	}
	if _, ok := l.sum.add(int128(nanos)); !ok || l.n == math.MaxInt64 {
		return fmt.Errorf("add a lag to %d: %w", l.n, ErrOverflow)
	}
	return nil
}

// roomy says that n rows fit.
func (l *Lag) roomy(n int) bool { return l.sum.roomy() && l.n <= math.MaxInt64-int64(n) }

func (l *Lag) add(nanos int64) {
	l.sum = l.sum.plus(nanos)
	l.n++
	l.counts[lagCell(nanos)]++
}

// addRows adds the given rows of lags, whose cells are known, and that they fit.
func (l *Lag) addRows(lags []int64, cells []uint16, rows []int32) {
	const half = 32
	var low, high int64 // of up to 2^31 rows
	for _, i := range rows {
		nanos := lags[i]
		low += nanos & (1<<half - 1)
		high += nanos >> half
		l.counts[cells[i]]++
	}
	l.sum, l.n = l.sum.plus(low).plusShifted(high, half), l.n+int64(len(rows))
}

// lagCellsOf finds the cells of lags.
func lagCellsOf(cells []uint16, lags []int64) {
	vectors := fixedpoint.LagCells(cells, lags, lagUnit, &lagMantissas, lagBase)
	for i, nanos := range lags {
		if !vectors || cells[i] == fixedpoint.LongLag {
			cells[i] = uint16(lagCell(nanos))
		}
	}
}

func lagCell(nanos int64) int {
	if nanos < lagUnit {
		return int(min(1, uint64(max(0, nanos))))
	}
	if nanos >= lagExact {
		return longLagCell(nanos)
	}
	// An octave of float64 has four thresholds, at mantissas that do not depend on it.
	x := int64(math.Float64bits(float64(nanos)))
	m, above := x&(1<<52-1), int64(0)
	for _, t := range &lagMantissas {
		above -= (t - 1 - m) >> 63 // 1 where m >= t: lags cannot be predicted
	}
	return int(lagPerOct*(x>>52)+above) - lagBase
}

// lagExact is the first number of ns whose neighbour float64 does not have.
const lagExact = 1 << 53

// longLagCell is lagCell of lags that float64 may round to the end of their octave.
func longLagCell(nanos int64) int {
	octave := bits.Len64(uint64(nanos)/lagUnit) - 1
	cell := lagFirst + lagPerOct*octave
	for _, q := range lagQuarter[1:lagPerOct] {
		if float64(nanos) >= math.Ldexp(q, octave) {
			cell++
		}
	}
	return cell
}

// lagMantissas are the mantissas of 1 ms · 2^(q/4) in ns, as bits; lagBase makes cells of exponents.
var lagMantissas, lagBase = func() (t [lagPerOct]int64, base int) {
	below := 0
	for q := range t {
		t[q] = int64(math.Float64bits(lagQuarter[q])) & (1<<52 - 1)
	}
	first := math.Float64bits(lagUnit)
	for _, m := range t {
		if m <= t[0] {
			below++
		}
	}
	return t, lagPerOct*int(first>>52) + below - lagFirst
}()

// lagEdge returns the lower end of a cell in seconds; cell lagCells is the end of the last.
func lagEdge(cell int) float64 {
	if cell < lagFirst {
		return 0
	}
	i := cell - lagFirst
	return math.Ldexp(lagQuarter[i%lagPerOct], i/lagPerOct) * 1e-9
}

// Mean returns the mean lag in seconds; NaN without rows.
func (l *Lag) Mean() float64 { return l.sum.float() / float64(l.n) * 1e-9 }

// Quantile returns the q-quantile in seconds, to one cell: linear interpolation inside the cell of rank q·N, 0 for
// lags of zero and below. NaN without rows; q is clamped to [0,1].
func (l *Lag) Quantile(q float64) float64 {
	if l.n == 0 {
		return math.NaN()
	}
	rank := min(max(q, 0), 1) * float64(l.n)
	below, last := 0.0, 0
	for i, c := range l.counts {
		if c == 0 {
			continue
		}
		last = i
		if n := float64(c); below+n >= rank {
			return lagAt(i, (rank-below)/n)
		}
		below += float64(c)
	}
	return lagAt(last, 1)
}

func lagAt(cell int, f float64) float64 {
	if cell == 0 {
		return 0
	}
	lo := lagEdge(cell)
	return lo + f*(lagEdge(cell+1)-lo)
}

// Merge adds the rows of o, which stays as it is.
func (l *Lag) Merge(o *Lag) error {
	if err := l.check(o); err != nil {
		return err
	}
	l.merge(o)
	return nil
}

func (l *Lag) check(o *Lag) error {
	if _, ok := l.sum.add(o.sum); !ok || o.n > math.MaxInt64-l.n {
		return fmt.Errorf("add %d lags to %d: %w", o.n, l.n, ErrOverflow)
	}
	return nil
}

func (l *Lag) merge(o *Lag) {
	l.sum, _ = l.sum.add(o.sum)
	l.n += o.n
	for i, c := range o.counts {
		l.counts[i] += c
	}
}

// Reset empties the histogram.
func (l *Lag) Reset() { *l = Lag{} }

// Clone returns a copy.
func (l *Lag) Clone() *Lag {
	d := *l
	return &d
}

const lagVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint n, n times (uvarint cell, difference from the one before,
// uvarint rows ≥ 1), i128 Σ lag in ns. Cell 0: lag ≤ 0. Cell 1: below 1 ms. Cell 2 + 4o + q: from 2^(o+q/4) ms.
func (l *Lag) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, lagVersion)
	used := 0
	for _, c := range l.counts {
		if c != 0 {
			used++
		}
	}
	b = binenc.AppendUvarint(b, uint64(used))
	prev := 0
	for i, c := range l.counts {
		if c != 0 {
			b = binenc.AppendUvarint(b, uint64(i-prev))
			b = binenc.AppendUvarint(b, uint64(c))
			prev = i
		}
	}
	return l.sum.append(b), nil
}

// UnmarshalBinary replaces the contents by the encoded ones; after an error they are as they were.
func (l *Lag) UnmarshalBinary(data []byte) error { return replace(l, data) }

// decode decodes into a new one.
func (l *Lag) decode(data []byte, _ *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(lagVersion)
	const entryBytes = 2
	cell := int64(0)
	for i, n := 0, r.Count(entryBytes, lagCells); i < n && r.Err() == nil; i++ {
		cell += r.Int("cell step", int64(min(i, 1)), lagCells-1)
		if cell >= lagCells {
			r.Failf("cell is %d, allowed below %d", cell, lagCells)
			break
		}
		c := r.Int("count", 1, math.MaxInt64-l.n)
		l.counts[cell] = c
		l.n += c
	}
	l.sum = readI128(&r)
	if l.n == 0 && l.sum != (i128{}) {
		r.Failf("a sum without lags")
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode lag: %w", err)
	}
	return nil
}
