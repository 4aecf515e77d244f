package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
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
	// Σ w·u of the wrong and of the correct rows, Σ w·u·c, Σ w·u·c², each of M bins and 0 up to whole vectors.
	// Invariant: all are at most w.
	sums [softFields][]int64

	// With ρ = exp(rate·(c - ξ_0)) a row's u_j is proportional to ρ^j·gauss_j: one exponential a row. The exponents are
	// at most 700 and right to a few ulps, so u_j is off by less than 2^-40 of itself. gauss is nil where T is so small
	// that these would leave the range of float64; each row is then worked out from its nearest bin by weights.
	rate, first     float64   // 2/(M·T) and ξ_0
	gauss           []float64 // exp(-(j/M)²/T)
	u               []float64 // scratch
	decay, logDecay float64   // exp(-2δ²/T) and δ²/T, δ = 1/M
}

const (
	softWrong = iota
	softCorrect
	softC
	softC2
	softFields
)

// softRange bounds the exponents of ρ^j and 1/gauss_j.
const softRange = 700

// NewSoftBins returns an empty accumulator. m is 1 to 3600, t is 1e-9 to 1e9, else ErrShape.
func NewSoftBins(m int, t float64) (*SoftBins, error) {
	if err := checkSoft(m, t); err != nil {
		return nil, err
	}
	padded := fixedpoint.Padded(m)
	d := 1 / float64(m)
	ld := float64(d*d) / t
	b := &SoftBins{m: m, t: t, u: make([]float64, padded), rate: 2 * d / t, first: 0.5 / float64(m),
		decay: fixedpoint.Exp(-2 * ld), logDecay: ld}
	b.makeSums(padded)
	if float64(b.rate*float64(padded)) <= softRange && ld*float64(m*m) <= softRange {
		b.gauss = make([]float64, padded)
		for j := range m {
			b.gauss[j] = fixedpoint.Exp(-ld * float64(j*j))
		}
	}
	return b, nil
}

func (b *SoftBins) makeSums(padded int) {
	b.cut(make([]int64, softFields*padded), padded)
}

// cut makes the sums of zeroed memory.
func (b *SoftBins) cut(all []int64, padded int) {
	for f := range b.sums {
		b.sums[f] = all[f*padded : (f+1)*padded : (f+1)*padded]
	}
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
	b.addOne(c, w, correct)
	b.n++
	b.w += wf
}

// ratio returns ρ of confidence c.
func (b *SoftBins) ratio(c float64) float64 { return fixedpoint.Exp(b.rate * (c - b.first)) }

// outcomes are the sums by outcome.
func (b *SoftBins) outcomes() fixedpoint.OutcomeSums {
	return fixedpoint.OutcomeSums{
		Wrong: b.sums[softWrong], Right: b.sums[softCorrect], UC: b.sums[softC], UC2: b.sums[softC2],
	}
}

// addOne adds a row to all but the totals.
func (b *SoftBins) addOne(c, w float64, correct bool) {
	all := b.outcomes()
	sums := all.Of(correct)
	if b.gauss != nil && w < fixFast {
		sums.Add(b.gauss, b.u, fixedpoint.SoftRow{Rho: b.ratio(c), C: c, W: w})
		return
	}
	b.addFromNearest(sums.U, c, w)
}

func (b *SoftBins) addFromNearest(s []int64, c, w float64) {
	b.weights(c)
	for j, u := range b.u[:b.m] {
		if u == 0 {
			continue
		}
		u = min(u, 1) * w
		uc := u * c
		s[j] += fix(u)
		b.sums[softC][j] += fix(uc)
		b.sums[softC2][j] += fix(uc * c)
	}
}

// weights sets b.u to the membership of c for any T. With e_j = exp(-(c-ξ_j)²/T), e_{j+1}/e_j = r_j and r_{j+1}/r_j =
// exp(-2δ²/T): two exponentials a row. Going outwards from the nearest centre every factor is at most 1, so nothing
// overflows, and after j steps the relative error is below j²·2^-52, far below the rounding to 2^-32.
func (b *SoftBins) weights(c float64) {
	m := float64(b.m)
	j0 := min(int(c*m), b.m-1)
	t := 2 * (float64(c*m) - (float64(j0) + 0.5)) // twice the distance to the nearest centre, in bins: [-1, 1]
	u := b.u[:b.m]
	u[j0] = 1
	sum := 1.0
	// Products are converted so that no platform fuses them into a sum.
	for e, r, j := 1.0, fixedpoint.Exp(-b.logDecay*(1-t)), j0+1; j < b.m; j++ {
		e *= r
		r *= b.decay
		u[j] = e
		sum += float64(e)
	}
	for e, r, j := 1.0, fixedpoint.Exp(-b.logDecay*(1+t)), j0-1; j >= 0; j-- {
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
		W: unfix(b.w), S: make([]float64, b.m), UC: make([]float64, b.m), UA: make([]float64, b.m),
		UC2: make([]float64, b.m),
	}
	for j := range b.m {
		ua := b.sums[softCorrect][j]
		s.S[j], s.UC[j], s.UA[j], s.UC2[j] = unfix(b.sums[softWrong][j]+ua), unfix(b.sums[softC][j]), unfix(ua),
			unfix(b.sums[softC2][j])
	}
	return s
}

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
	for f, s := range o.sums {
		for j, v := range s {
			b.sums[f][j] += v
		}
	}
	b.n += o.n
	b.w += o.w
}

// Reset sets all sums to 0.
func (b *SoftBins) Reset() {
	for _, s := range b.sums {
		clear(s)
	}
	b.n, b.w = 0, 0
}

// Clone returns a deep copy.
func (b *SoftBins) Clone() *SoftBins {
	d := *b
	d.u = make([]float64, len(b.u))
	d.makeSums(len(b.u))
	for f, s := range b.sums {
		copy(d.sums[f], s)
	}
	return &d
}

const softVersion = 1

// AppendBinary appends the encoding: u8 version, uvarint M, f64 T, the total, then for bins 0 … M−1 uvarint S, Σ w·u·c,
// Σ w·u·a, Σ w·u·c².
func (b *SoftBins) AppendBinary(dst []byte) ([]byte, error) {
	dst = append(dst, softVersion)
	dst = binenc.AppendUvarint(dst, uint64(b.m))
	dst = binenc.AppendFloat64(dst, b.t)
	dst = appendTotal(dst, b.n, b.w)
	for j := range b.m {
		ua := b.sums[softCorrect][j]
		dst = binenc.AppendUvarint(dst, uint64(b.sums[softWrong][j]+ua))
		dst = binenc.AppendUvarint(dst, uint64(b.sums[softC][j]))
		dst = binenc.AppendUvarint(dst, uint64(ua))
		dst = binenc.AppendUvarint(dst, uint64(b.sums[softC2][j]))
	}
	return dst, nil
}

// UnmarshalBinary replaces configuration and contents by the encoded ones; after an error they are as they were.
func (b *SoftBins) UnmarshalBinary(data []byte) error { return replace(b, data) }

func (b *SoftBins) decode(data []byte, d *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(softVersion)
	const binBytes = 4
	m, t := r.Count(binBytes, maxBins), r.Float64()
	if r.Err() != nil {
		return fmt.Errorf("decode soft bins: %w", r.Err())
	}
	if err := d.softBins(b, m, t); err != nil {
		return fmt.Errorf("decode soft bins: %w: %w", err, ErrCorrupt)
	}
	b.n, b.w = readTotal(&r)
	wrong, correct, c, c2 := b.sums[softWrong][:m], b.sums[softCorrect][:m], b.sums[softC][:m], b.sums[softC2][:m]
	for j := range wrong {
		s := r.Int("S", 0, b.w)
		uc := r.Int("UC", 0, s)
		ua := r.Int("UA", 0, s)
		wrong[j], correct[j], c[j], c2[j] = s-ua, ua, uc, r.Int("UC2", 0, uc)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode soft bins: %w", err)
	}
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
