package acc

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Scores are the sums of the proper scores: N, Σw, Σw², Σ w·NLL, Σ w·Brier, Σ w·a, Σ w·c.
// The zero value is empty and ready for use. A row's w·NLL saturates at ±2^62 nats: a label of probability 0 leaves
// a visible mark, not an infinity, and the sum stays mergeable.
type Scores struct {
	n, w           int64
	w2, nll, brier i128
	wa, wc         int64 // at most w
}

// Add adds a row: nll = -ln p_y, brier = Σ_k (p_k - 1[k=y])², c its confidence.
func (s *Scores) Add(nll, brier, c, w float64, correct bool) error {
	if err := checkUnit("confidence", c); err != nil {
		return err
	}
	if err := checkWeight(w); err != nil {
		return err
	}
	row := labelRow{confidences: confidences{msp: c}, nll: nll, brier: brier, w: w, wf: fix(w), correct: correct}
	if err := s.fits(&row); err != nil {
		return err
	}
	s.add(&row)
	return nil
}

// fits returns the error for which add must not be called; its confidence and weight have been checked.
func (s *Scores) fits(r *labelRow) error {
	if math.IsNaN(r.nll) || math.IsNaN(r.brier) {
		return fmt.Errorf("nll is %v, brier %v, allowed numbers: %w", r.nll, r.brier, ErrValue)
	}
	if err := checkRoom(s.n, s.w, 1, r.wf); err != nil {
		return err
	}
	if s.roomy() {
		return nil
	}
	row := Scores{w2: fix128(r.w * r.w), nll: fix128(r.w * r.nll), brier: fix128(r.w * r.brier)}
	return s.check(&row)
}

// roomy says that the wide sums have room for any 2^31 rows.
func (s *Scores) roomy() bool { return s.w2.roomy() && s.nll.roomy() && s.brier.roomy() }

// add is Add after the checks.
func (s *Scores) add(r *labelRow) {
	s.n++
	s.w += r.wf
	s.wc += fix(r.w * r.msp)
	if r.correct {
		s.wa += r.wf
	}
	s.w2 = s.w2.plusFix(r.w * r.w)
	s.nll = s.nll.plusFix(r.w * r.nll)
	s.brier = s.brier.plusFix(r.w * r.brier)
}

// plusFix returns a + fix128(x) where the caller knows that it fits.
func (a i128) plusFix(x float64) i128 {
	if x >= 0 && x < fixFast {
		return a.plus(fix(x))
	}
	sum, _ := a.add(fix128(x))
	return sum
}

// Total returns the number of rows and Σw.
func (s *Scores) Total() (n int64, w float64) { return s.n, unfix(s.w) }

// EffectiveN returns (Σw)²/Σw², Kish's effective number of rows; NaN without weight.
func (s *Scores) EffectiveN() float64 { return unfix(s.w) * unfix(s.w) / s.w2.value() }

// NLL returns Σ w·NLL / Σw in nats; NaN without weight.
func (s *Scores) NLL() float64 { return s.nll.value() / unfix(s.w) }

// Brier returns Σ w·Brier / Σw, in [0,2]; NaN without weight.
func (s *Scores) Brier() float64 { return s.brier.value() / unfix(s.w) }

// Accuracy returns Σ w·a / Σw; NaN without weight.
func (s *Scores) Accuracy() float64 { return ratio(s.wa, s.w) }

// MeanConfidence returns Σ w·c / Σw; NaN without weight.
func (s *Scores) MeanConfidence() float64 { return ratio(s.wc, s.w) }

// Merge adds the rows of o, which stays as it is.
func (s *Scores) Merge(o *Scores) error {
	d, err := s.plus(o)
	if err != nil {
		return err
	}
	*s = d
	return nil
}

func (s *Scores) check(o *Scores) error {
	_, err := s.plus(o)
	return err
}

func (s *Scores) plus(o *Scores) (Scores, error) {
	if err := checkRoom(s.n, s.w, o.n, o.w); err != nil {
		return Scores{}, err
	}
	d := Scores{n: s.n + o.n, w: s.w + o.w, wa: s.wa + o.wa, wc: s.wc + o.wc}
	var ok1, ok2, ok3 bool
	d.w2, ok1 = s.w2.add(o.w2)
	d.nll, ok2 = s.nll.add(o.nll)
	d.brier, ok3 = s.brier.add(o.brier)
	if !ok1 || !ok2 || !ok3 {
		return Scores{}, fmt.Errorf("add scores of %d rows to %d: %w", o.n, s.n, ErrOverflow)
	}
	return d, nil
}

// Reset sets all sums to 0.
func (s *Scores) Reset() { *s = Scores{} }

// Clone returns a copy.
func (s *Scores) Clone() *Scores {
	d := *s
	return &d
}

const scoresVersion = 1

// AppendBinary appends the encoding: u8 version, the total, uvarint Σ w·a, uvarint Σ w·c, i128 Σw², Σ w·NLL, Σ w·Brier.
func (s *Scores) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, scoresVersion)
	b = appendTotal(b, s.n, s.w)
	b = binenc.AppendUvarint(b, uint64(s.wa))
	b = binenc.AppendUvarint(b, uint64(s.wc))
	b = s.w2.append(b)
	b = s.nll.append(b)
	return s.brier.append(b), nil
}

// UnmarshalBinary replaces the contents by the encoded ones; after an error they are as they were.
func (s *Scores) UnmarshalBinary(data []byte) error { return replace(s, data) }

// decode decodes into new ones.
func (s *Scores) decode(data []byte, _ *Decoder) error {
	r := binenc.NewReader(data)
	r.Version(scoresVersion)
	s.n, s.w = readTotal(&r)
	s.wa = r.Int("sum of a", 0, s.w)
	s.wc = r.Int("sum of c", 0, s.w)
	s.w2, s.nll, s.brier = readI128(&r), readI128(&r), readI128(&r)
	if zero := (i128{}); s.n == 0 && (s.w2 != zero || s.nll != zero || s.brier != zero) {
		r.Failf("sums without rows")
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode scores: %w", err)
	}
	return nil
}
