package drift

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/binenc"
)

// counted reports whether the key has any class counts to save.
func (d *State) counted() bool {
	for _, c := range []*acc.ClassCounts{d.ref.classes.said, d.ref.classes.confused, d.next.classes.said,
		d.next.classes.confused, d.classes.block} {
		if c != nil {
			return true
		}
	}
	return d.classes.soft.ready()
}

// appendClasses appends the class counts. It appends nothing if there are none.
func (d *State) appendClasses(dst []byte) ([]byte, error) {
	if !d.counted() {
		return dst, nil
	}
	c := &d.classes
	var err error
	for _, x := range []*acc.ClassCounts{d.ref.classes.said, d.ref.classes.confused, d.next.classes.said,
		d.next.classes.confused, c.block} {
		if x == nil {
			dst = binenc.AppendUvarint(dst, 0)
		} else if dst, err = binenc.AppendBlock(dst, x.AppendBinary); err != nil {
			return dst, err
		}
	}
	dst = binenc.AppendVarint(dst, c.at)
	s := &c.soft
	dst = binenc.AppendFloat64(dst, s.rows)
	dst = binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(s.revision)), s.fresh)
	if !s.ready() {
		return dst, nil
	}
	if kept := s.pool.Kept(); kept != nil {
		for _, j := range kept {
			dst = binenc.AppendUvarint(dst, uint64(j))
		}
		dst = binenc.AppendFloat64(dst, s.wrong)
	}
	dst = binenc.AppendFloat64s(dst, s.bias...)
	k := s.pool.Classes()
	for i := 0; i < len(s.joint); i += k { // with many classes most symbols have no rows
		row := s.joint[i : i+k]
		some := false
		for _, x := range row {
			some = some || x != 0
		}
		if dst = append(dst, binenc.Flags(some)); some {
			dst = binenc.AppendFloat64s(dst, row...)
		}
	}
	return binenc.AppendFloat64s(binenc.AppendFloat64s(dst, s.byLabel.Rows...), s.byLabel.Gap...), nil
}

// restoreClasses reads what appendClasses wrote.
func (d *State) restoreClasses(in *binenc.Reader) error {
	c := &d.classes
	for _, x := range []**acc.ClassCounts{&d.ref.classes.said, &d.ref.classes.confused, &d.next.classes.said,
		&d.next.classes.confused, &c.block} {
		b := in.Bytes(binenc.MaxBytes)
		if in.Err() != nil || len(b) == 0 {
			continue
		}
		*x = &acc.ClassCounts{}
		if err := (*x).UnmarshalBinary(b); err != nil {
			return err
		}
		if k := (*x).Classes(); k != c.k {
			return fmt.Errorf("counts of %d classes, want %d", k, c.k)
		}
	}
	c.at = in.Varint()
	s := &c.soft
	s.rows = in.Float64()
	s.revision, s.fresh = int(in.Int("revision", 0, 1<<40)), in.Varint()
	if !s.ready() || in.Err() != nil {
		return in.Err()
	}
	if err := s.restorePool(in, c.k); err != nil {
		return err
	}
	k := s.pool.Classes()
	s.bias, s.joint = make([]float64, k), make([]float64, k*acc.Bands*k)
	readFinite(in, s.bias)
	for i := 0; i < len(s.joint); i += k {
		if in.Byte() == 1 {
			readFinite(in, s.joint[i:i+k])
		}
	}
	s.byLabel = shift.ByLabel{Rows: make([]float64, k), Gap: make([]float64, k*gapBins)}
	readFinite(in, s.byLabel.Rows)
	readFinite(in, s.byLabel.Gap)
	return in.Err()
}

// restorePool reads which classes the pool keeps separate, if there are more than MaxClasses, and the wrong rows within
// the rest.
func (s *softJoint) restorePool(in *binenc.Reader, k int) (err error) {
	var kept []int
	if k > shift.MaxClasses {
		for range shift.MaxClasses - 1 {
			kept = append(kept, int(in.Int("class", 0, int64(k-1))))
		}
		wrong := []float64{0}
		readFinite(in, wrong)
		s.wrong = wrong[0]
	}
	if in.Err() != nil {
		return in.Err()
	}
	s.pool, err = shift.RestorePool(k, kept)
	return err
}

// readFinite reads floats and refuses NaN and infinities.
func readFinite(in *binenc.Reader, dst []float64) {
	for i := range dst {
		if dst[i] = in.Float64(); math.IsNaN(dst[i]) || math.IsInf(dst[i], 0) {
			in.Failf("sum is %v, allowed numbers", dst[i])
			return
		}
	}
}
