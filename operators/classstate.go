package operators

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/shift"
	"github.com/plumbline/plumbline/internal/binenc"
)

// classDriftVersion is of what a key's reference has of classes; older states end before it, and it begins empty then.
const classDriftVersion = 1

// counted reports whether there is anything to keep of classes.
func (d *keyDrift) counted() bool {
	for _, c := range []*acc.ClassCounts{d.ref.classes.said, d.ref.classes.confused, d.next.classes.said, d.next.classes.confused, d.classes.block} {
		if c != nil {
			return true
		}
	}
	return d.classes.soft.ready()
}

// appendClasses appends the classes, unless there are none.
func (d *keyDrift) appendClasses(dst []byte) ([]byte, error) {
	if !d.counted() {
		return dst, nil
	}
	dst = append(dst, classDriftVersion)
	c := &d.classes
	var err error
	for _, x := range []*acc.ClassCounts{d.ref.classes.said, d.ref.classes.confused, d.next.classes.said, d.next.classes.confused, c.block} {
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
	dst = appendFloats(dst, s.bias...)
	for i := 0; i < len(s.joint); i += c.k { // most symbols of many classes have no rows
		row := s.joint[i : i+c.k]
		some := false
		for _, x := range row {
			some = some || x != 0
		}
		if dst = append(dst, bits(some)); some {
			dst = appendFloats(dst, row...)
		}
	}
	return appendFloats(appendFloats(dst, s.byLabel.Rows...), s.byLabel.Gap...), nil
}

// restoreClasses reads what appendClasses wrote.
func (d *keyDrift) restoreClasses(in *binenc.Reader) error {
	in.Version(classDriftVersion)
	c := &d.classes
	for _, x := range []**acc.ClassCounts{&d.ref.classes.said, &d.ref.classes.confused, &d.next.classes.said, &d.next.classes.confused, &c.block} {
		b := in.Bytes(maxBlob)
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
	if c.k > shift.MaxClasses {
		return fmt.Errorf("probabilities of %d classes, allowed up to %d", c.k, shift.MaxClasses)
	}
	s.bias, s.joint = make([]float64, c.k), make([]float64, c.k*acc.Bands*c.k)
	readFinite(in, s.bias)
	for i := 0; i < len(s.joint); i += c.k {
		if in.Byte() == 1 {
			readFinite(in, s.joint[i:i+c.k])
		}
	}
	s.byLabel = shift.ByLabel{Rows: make([]float64, c.k), Gap: make([]float64, c.k*gateBins)}
	readFinite(in, s.byLabel.Rows)
	readFinite(in, s.byLabel.Gap)
	return in.Err()
}

// readFinite reads floats that are numbers.
func readFinite(in *binenc.Reader, dst []float64) {
	for i := range dst {
		if dst[i] = in.Float64(); math.IsNaN(dst[i]) || math.IsInf(dst[i], 0) {
			in.Failf("sum is %v, allowed numbers", dst[i])
			return
		}
	}
}
