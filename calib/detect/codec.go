package detect

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/internal/binenc"
)

const detectorVersion = 2

// AppendBinary appends the state: version, fingerprint of the specification (8 bytes), panes, alarms (uvarint), last
// pane (varint); by expert R, or -log R where it is above e^300, and cusum (float64) and, where cusum > 0, last pane -
// since (uvarint); by half-life and bin Σw, Σ w·c, Σ w·a (float64). Equal states have equal bytes.
func (d *Detector) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, detectorVersion)
	b = binenc.AppendFixed64(b, d.dict.print)
	b = binenc.AppendUvarint(b, uint64(d.panes))
	b = binenc.AppendUvarint(b, uint64(d.fired))
	b = binenc.AppendVarint(b, d.last)
	for _, s := range d.state {
		b = binenc.AppendFloat64(b, float64(s.wealth))
		b = binenc.AppendFloat64(b, s.cusum)
		if s.cusum > 0 {
			b = binenc.AppendUvarint(b, uint64(d.last)-uint64(s.since))
		}
	}
	for _, bins := range d.past {
		for _, r := range bins {
			b = binenc.AppendFloat64s(b, r.n, r.c, r.a)
		}
	}
	return b, nil
}

// UnmarshalBinary replaces the state by the encoded one, which must be of a detector of the same specification; after
// an error (ErrCorrupt) it is as it was.
func (d *Detector) UnmarshalBinary(data []byte) error {
	r := binenc.NewReader(data)
	n := d.Fresh()
	n.read(&r)
	if err := r.Close(); err != nil {
		return fmt.Errorf("decode detector: %w", err)
	}
	*d = *n
	return nil
}

// largest is beyond every number that 2^63 panes of maxWeight rows can make of a state.
const largest = 1e35

func (d *Detector) read(r *binenc.Reader) {
	r.Version(detectorVersion)
	if p := r.Fixed64(); r.Err() == nil && p != d.dict.print {
		r.Failf("state of a detector of another specification: fingerprint %#x, this one has %#x", p, d.dict.print)
	}
	d.panes = r.Int("panes", 0, math.MaxInt64)
	d.fired = r.Int("alarms", 0, max(d.panes, 0))
	d.last = r.Varint()
	for k := range d.state {
		s := &d.state[k]
		s.wealth, s.cusum, s.since = wealth(r.Float64()), r.Float64(), d.last
		if !s.wealth.valid() || !(s.cusum >= 0 && s.cusum < largest) || math.Signbit(s.cusum) {
			r.Failf("expert %d: R %v, cusum %v, allowed are R from 0 to e^%d, or -log R below -%d, and cusums from 0 "+
				"to below %g", k, float64(s.wealth), s.cusum, wealthTop, wealthTop, largest)
		}
		if s.cusum > 0 {
			age := r.Uvarint()
			s.since = int64(uint64(d.last) - age)
			if s.since > d.last {
				r.Failf("expert %d: begins %d panes before pane %d", k, age, d.last)
			}
		}
	}
	for h := range d.past {
		for j := range d.past[h] {
			m := &d.past[h][j]
			*m = remembered{r.Float64(), r.Float64(), r.Float64()}
			if !m.valid() {
				r.Failf("half-life %d, bin %d: sums %v, %v, %v that no rows have", h, j, m.n, m.c, m.a)
			}
		}
	}
}

// valid reports whether rows can have these sums, up to rounding; only 0 may come without rows.
func (r remembered) valid() bool {
	const slack = 1 + 1e-6
	ok := func(x float64) bool { return x >= 0 && x <= r.n*slack && !math.Signbit(x) }
	return r.n >= 0 && r.n < largest && ok(r.c) && ok(r.a) && !math.Signbit(r.n)
}
