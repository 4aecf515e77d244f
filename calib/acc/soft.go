package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/binenc"
)

// maxBins bounds the bins of soft-bin and class-wise accumulators.
const maxBins = GridCells

// Bounds of the soft-bin temperature: δ²/T and its products stay finite.
const minSoftT, maxSoftT = 1e-9, 1e9

// SoftBins are the soft-bin sums of M bins at temperature T: a row of confidence c belongs to bin j with
//
//	u_j = softmax_j(-(c - ξ_j)²/T),  ξ_j = (j+½)/M
//
// and each bin has Σ w·u_j, Σ w·u_j·c, Σ w·u_j·a and Σ w·u_j·c². Make it with NewSoftBins; the zero value only
// decodes. Reference: Karandikar et al., Soft Calibration Objectives, 2021, Eq. 8–12.
type SoftBins struct {
	m    int
	t    float64
	n, w int64
	sums []softSum // M. Invariant: all are at most w.
	u    []float64 // scratch, M
	decay,
	logDecay float64 // exp(-2δ²/T) and δ²/T, δ = 1/M
}

type softSum struct{ s, uc, ua, uc2 int64 }

// NewSoftBins returns an empty accumulator. m is 1 to 3600, t is 1e-9 to 1e9, else ErrShape.
func NewSoftBins(m int, t float64) (*SoftBins, error) {
	if err := checkSoft(m, t); err != nil {
		return nil, err
	}
	d := 1 / float64(m)
	ld := d * d / t
	return &SoftBins{
		m: m, t: t, sums: make([]softSum, m), u: make([]float64, m), decay: math.Exp(-2 * ld), logDecay: ld,
	}, nil
}

func checkSoft(m int, t float64) error {
	if m < 1 || m > maxBins {
		return fmt.Errorf("soft bins is %d, allowed 1 to %d: %w", m, maxBins, ErrShape)
	}
	if !(t >= minSoftT && t <= maxSoftT) {
		return fmt.Errorf("soft-bin temperature is %v, allowed %v to %v: %w", t, minSoftT, maxSoftT, ErrShape)
	}
	return nil
}

// Shape returns M and T.
func (b *SoftBins) Shape() (m int, t float64) { return b.m, b.t }

// Add adds a row of confidence c, outcome a and weight w.
func (b *SoftBins) Add(c, w float64, correct bool) error {
	if err := checkUnit("confidence", c); err != nil {
		return err
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	wf := fix(w)
	if err := checkRoom(b.n, b.w, 1, wf); err != nil {
		return err
	}
	b.add(c, w, wf, correct)
	return nil
}

func (b *SoftBins) add(c, w float64, wf int64, correct bool) {
	b.weights(c)
	for j, u := range b.u {
		if u == 0 {
			continue
		}
		u = min(u, 1) * w
		s, uc := fix(u), u*c
		d := &b.sums[j]
		d.s += s
		d.uc += fix(uc)
		d.uc2 += fix(uc * c)
		if correct {
			d.ua += s
		}
	}
	b.n++
	b.w += wf
}

// weights sets b.u to the membership of c. With e_j = exp(-(c-ξ_j)²/T), e_{j+1}/e_j = r_j and r_{j+1}/r_j =
// exp(-2δ²/T): two exponentials a row. Going outwards from the nearest centre every factor is at most 1, so nothing
// overflows, and after j steps the relative error is below j²·2^-52, far below the rounding to 2^-32.
func (b *SoftBins) weights(c float64) {
	m := float64(b.m)
	j0 := min(int(c*m), b.m-1)
	t := 2 * (float64(c*m) - (float64(j0) + 0.5)) // twice the distance to the nearest centre, in bins: [-1, 1]
	u := b.u
	u[j0] = 1
	sum := 1.0
	// Products are converted so that no platform fuses them into a sum.
	for e, r, j := 1.0, math.Exp(-b.logDecay*(1-t)), j0+1; j < b.m; j++ {
		e *= r
		r *= b.decay
		u[j] = e
		sum += float64(e)
	}
	for e, r, j := 1.0, math.Exp(-b.logDecay*(1+t)), j0-1; j >= 0; j-- {
		e *= r
		r *= b.decay
		u[j] = e
		sum += float64(e)
	}
	inv := 1 / sum
	for j := range u {
		u[j] *= inv
	}
}

// Sums returns the sums as floating-point numbers, for metric.SBECE and others.
func (b *SoftBins) Sums() metric.SoftSums {
	s := metric.SoftSums{
		W: unfix(b.w), S: make([]float64, b.m), UC: make([]float64, b.m), UA: make([]float64, b.m), UC2: make([]float64, b.m),
	}
	for j, d := range b.sums {
		s.S[j], s.UC[j], s.UA[j], s.UC2[j] = unfix(d.s), unfix(d.uc), unfix(d.ua), unfix(d.uc2)
	}
	return s
}

// Total returns the number of rows and Σw.
func (b *SoftBins) Total() (n int64, w float64) { return b.n, unfix(b.w) }

// Merge adds the rows of o, which stays as it is. Another M or T is ErrShape.
func (b *SoftBins) Merge(o *SoftBins) error {
	if err := b.check(o); err != nil {
		return err
	}
	b.merge(o)
	return nil
}

func (b *SoftBins) check(o *SoftBins) error {
	if b.m != o.m || b.t != o.t {
		return fmt.Errorf("merge %d soft bins at %v into %d at %v: %w", o.m, o.t, b.m, b.t, ErrShape)
	}
	return checkRoom(b.n, b.w, o.n, o.w)
}

func (b *SoftBins) merge(o *SoftBins) {
	for j, s := range o.sums {
		d := &b.sums[j]
		d.s += s.s
		d.uc += s.uc
		d.ua += s.ua
		d.uc2 += s.uc2
	}
	b.n += o.n
	b.w += o.w
}

// Reset sets all sums to 0.
func (b *SoftBins) Reset() {
	clear(b.sums)
	b.n, b.w = 0, 0
}

// Clone returns a deep copy.
func (b *SoftBins) Clone() *SoftBins {
	d := *b
	d.sums = append([]softSum(nil), b.sums...)
	d.u = make([]float64, b.m)
	return &d
}

const softVersion = 1

// AppendBinary appends the encoding (docs/format.md, SoftBins).
func (b *SoftBins) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, softVersion)
	dst = binenc.AppendUvarint(dst, uint64(b.m))
	dst = binenc.AppendFloat64(dst, b.t)
	dst = appendTotal(dst, b.n, b.w)
	for _, d := range b.sums {
		dst = binenc.AppendUvarint(dst, uint64(d.s))
		dst = binenc.AppendUvarint(dst, uint64(d.uc))
		dst = binenc.AppendUvarint(dst, uint64(d.ua))
		dst = binenc.AppendUvarint(dst, uint64(d.uc2))
	}
	return dst, nil
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (b *SoftBins) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	r.Version(softVersion)
	const binBytes = 4
	m, t := r.Count(binBytes, maxBins), r.Float64()
	if r.Err() != nil {
		return fmt.Errorf("decode soft bins: %w", r.Err())
	}
	d, err := NewSoftBins(m, t)
	if err != nil {
		return fmt.Errorf("decode soft bins: %w: %w", err, ErrCorrupt)
	}
	d.n, d.w = readTotal(&r)
	for j := range d.sums {
		s := softSum{s: r.Int("S", 0, d.w)}
		s.uc = r.Int("UC", 0, s.s)
		s.ua = r.Int("UA", 0, s.s)
		s.uc2 = r.Int("UC2", 0, s.uc)
		d.sums[j] = s
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode soft bins: %w", err)
	}
	*b = *d
	return nil
}

// appendTotal appends N and Σw, the latter as its difference from N: one byte where all weights are 1.
func appendTotal(b []byte, n, w int64) []byte {
	return binenc.AppendVarint(binenc.AppendUvarint(b, uint64(n)), w-n<<fixBits)
}

func readTotal(r *binenc.Reader) (n, w int64) {
	n = r.Int("rows", 0, math.MaxInt64)
	w = r.Varint() + n<<fixBits
	if w < 0 || n == 0 && w != 0 {
		r.Failf("%d rows of weight %d units", n, w)
		return 0, 0
	}
	return n, w
}
