package evalue

import (
	"errors"
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

var (
	// ErrValue is for a bound, margin or gain outside its range; nothing was changed.
	ErrValue = errors.New("value out of range")
	// ErrCorrupt is for bytes that are no encoding of a Paired; the receiver is as it was.
	ErrCorrupt = binenc.ErrCorrupt
)

// stakes is the number of bets that Paired mixes.
const stakes = 12

// largestStake is the share of its wealth that the boldest bet can lose at one row.
const largestStake = .9

// Paired tests on the rows that come, at any time, whether one calibrator is better than another by the mean of a
// bounded gain x_i in [-B, B] (of NLL: nll_old - nll_new). The null is
//
//	E[x_i | past] ≤ -δ   for all i
//
// with margin δ = 0 for "not better", δ > 0 for "worse by δ or more" (non-inferiority). The e-value is the mixture of
// bets
//
//	E_n = 1/12 Σ_k Π_{i≤n} (1 + λ_k(x_i + δ)),   λ_k = 0.9·2^-k/B,  k = 0 … 11
//
// a non-negative martingale at worst, so P(E_n ≥ 1/α for some n) ≤ α (Ville). Where the null fails by μ it grows by
// about μ²/2σ² a row, for μ between 2^-11 and 0.9 of σ²/B, and by 0.9 μ/B above that: a bound that is
// much larger than the gains costs power.
//
// NLL has no bound. Compute both with probabilities floored at e^-B and say so: the claim is then about that loss. To
// clip gains above B alone is allowed for any loss (it lowers the mean); losses below -B must not be
// clipped.
//
// Reference: Waudby-Smith, Ramdas, Estimating means of bounded random variables by betting, JRSS-B 86, 2024, section 4.
type Paired struct {
	bound, margin float64
	n             int64
	sum, square   float64
	logWealth     [stakes]float64
}

// NewPaired returns the test for gains in [-bound, bound], 0 < bound < 1e6, and a margin in [0, bound).
func NewPaired(bound, margin float64) (*Paired, error) {
	if !(bound > 0 && bound < 1e6) {
		return nil, fmt.Errorf("bound of a paired test is %v, allowed above 0 and below 1e6: %w", bound, ErrValue)
	}
	if !(margin >= 0 && margin < bound) {
		return nil, fmt.Errorf("margin of a paired test is %v, allowed 0 to below the bound %v: %w", margin, bound,
			ErrValue)
	}
	return &Paired{bound: bound, margin: margin}, nil
}

// Add takes the gain of the next row; ErrValue where it is outside the bound.
func (p *Paired) Add(x float64) error {
	if !(math.Abs(x) <= p.bound) {
		return fmt.Errorf("gain is %v, allowed %v to %v: %w", x, -p.bound, p.bound, ErrValue)
	}
	stake := largestStake / p.bound
	for k := range p.logWealth {
		p.logWealth[k] += math.Log1p(stake * (x + p.margin))
		stake /= 2
	}
	p.n++
	p.sum += x
	p.square += x * x
	return nil
}

// LogE returns log E_n; 0 before any row. Reject the null at level α when it is at least log(1/α).
func (p *Paired) LogE() float64 {
	top := math.Inf(-1)
	for _, w := range p.logWealth {
		top = max(top, w)
	}
	var sum float64
	for _, w := range p.logWealth {
		sum += math.Exp(w - top)
	}
	return top + math.Log(sum/stakes)
}

// Gain returns the number of rows, the mean gain and its standard error, for people; NaN for fewer than two rows.
func (p *Paired) Gain() (n int64, mean, se float64) {
	if p.n < 2 {
		return p.n, math.NaN(), math.NaN()
	}
	m := float64(p.n)
	mean = p.sum / m
	return p.n, mean, math.Sqrt(max(0, p.square/m-mean*mean) / (m - 1))
}

const pairedVersion = 1

// AppendBinary appends version, bound, margin, rows (uvarint), Σx, Σx² and the 12 log wealths as float64.
func (p *Paired) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, pairedVersion)
	b = binenc.AppendFloat64s(b, p.bound, p.margin)
	b = binenc.AppendUvarint(b, uint64(p.n))
	b = binenc.AppendFloat64s(b, p.sum, p.square)
	return binenc.AppendFloat64s(b, p.logWealth[:]...), nil
}

// UnmarshalBinary replaces the state; after an error (ErrCorrupt) it is as it was.
func (p *Paired) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	r.Version(pairedVersion)
	var n Paired
	n.bound, n.margin = r.Float64(), r.Float64()
	n.n = r.Int("rows", 0, 1<<53)
	n.sum, n.square = r.Float64(), r.Float64()
	for k := range n.logWealth {
		n.logWealth[k] = r.Float64()
		// A row moves it by at most log 10.
		if most := 2.5 * (float64(n.n) + 1); !(math.Abs(n.logWealth[k]) <= most) {
			r.Failf("log wealth %d is %v, allowed up to %v after %d rows", k, n.logWealth[k], most, n.n)
		}
	}
	if _, err := NewPaired(n.bound, n.margin); r.Err() == nil && err != nil {
		r.Failf("%v", err)
	}
	const slack = 1 + 1e-6
	most := float64(n.n) * n.bound * slack
	if !(math.Abs(n.sum) <= most && n.square >= 0 && n.square <= most*n.bound) {
		r.Failf("sums %v, %v that %d gains up to %v cannot have", n.sum, n.square, n.n, n.bound)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode paired test: %w", err)
	}
	*p = n
	return nil
}
