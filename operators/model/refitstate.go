package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/binenc"
)

// append writes the state of a version's refits.
func (s *refitState) append(dst []byte) ([]byte, error) {
	dst = append(dst, binenc.Flags(s.started))
	dst = binenc.AppendVarint(dst, s.period)
	dst = binenc.AppendVarint(dst, s.alarmAt)
	dst = binenc.AppendUvarint(dst, uint64(s.revision))
	dst = binenc.AppendBytes(dst, s.last)
	dst = binenc.AppendFloat64(dst, s.unit)
	dst = append(dst, binenc.Flags(s.pin != nil))
	if s.pin != nil {
		dst = binenc.AppendVarint(binenc.AppendString(binenc.AppendString(dst, s.pin.by), s.pin.why), s.pin.at)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(s.orders)))
	for _, id := range s.orders {
		dst = append(dst, id[:]...)
	}
	dst = append(dst, binenc.Flags(s.guard != nil))
	if s.guard != nil {
		dst = s.guard.append(dst)
	}
	var err error
	dst = append(dst, binenc.Flags(s.trial != nil))
	if s.trial != nil {
		if dst, err = s.trial.append(dst); err != nil {
			return dst, err
		}
	}
	dst = append(dst, binenc.Flags(s.online != nil))
	if s.online != nil {
		return s.online.append(dst)
	}
	return dst, nil
}

func (s *refitState) restore(r *binenc.Reader) error {
	s.started = r.Byte() == 1
	s.period, s.alarmAt, s.revision = r.Varint(), r.Varint(), int(r.Int("revision", 0, 1<<40))
	s.last = slices.Clone(r.Bytes(binenc.MaxBytes))
	s.unit = r.Float64()
	if r.Byte() == 1 {
		s.pin = &pin{by: r.String(binenc.MaxName), why: r.String(binenc.MaxName), at: r.Varint()}
	}
	for range r.Count(16, keptOrders) {
		s.orders = append(s.orders, [16]byte(r.Raw(16)))
	}
	if r.Byte() == 1 {
		s.guard = &guard{}
		if err := s.guard.restore(r); err != nil {
			return err
		}
	}
	if r.Byte() == 1 {
		s.trial = &trial{}
		if err := s.trial.restore(r); err != nil {
			return err
		}
	}
	if r.Byte() == 1 {
		s.online = &online{}
		return s.online.restore(r)
	}
	return r.Err()
}

// check refuses what does not fit K classes: it would panic later.
func (s *refitState) check(k int) error {
	for _, r := range s.guardRivals() {
		if !calibrator.Fits(r.cal, k) {
			return fmt.Errorf("calibrator revision %d before that in force is not one for K = %d", r.revision, k)
		}
	}
	if s.trial == nil {
		return nil
	}
	for _, c := range s.trial.candidates {
		if c.cal != nil && !calibrator.Fits(c.cal, k) {
			return fmt.Errorf("candidate %s is not one for K = %d", c.method, k)
		}
	}
	for _, rows := range [][]acc.SampleRow{s.trial.fit, s.trial.held} {
		for i := range rows {
			if row := &rows[i]; len(row.Z) != k || row.Y < 0 || int(row.Y) >= k {
				return fmt.Errorf("a row of a refit has %d scores and label %d, want K = %d", len(row.Z), row.Y, k)
			}
		}
	}
	return nil
}

func (s *refitState) guardRivals() []*rival {
	if s.guard == nil {
		return nil
	}
	return s.guard.rivals
}

func (g *guard) append(dst []byte) []byte {
	dst = binenc.AppendFloat64(dst, g.weight)
	dst = binenc.AppendUvarint(dst, uint64(len(g.rivals)))
	for _, r := range g.rivals {
		dst = binenc.AppendBytes(binenc.AppendUvarint(dst, uint64(r.revision)), r.encoded)
		for _, l := range r.logR {
			dst = binenc.AppendFloat64(dst, l)
		}
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, r.rows), r.from)
		dst = appendFloats(dst, r.w, r.inForce, r.itself)
	}
	return dst
}

func (g *guard) restore(in *binenc.Reader) error {
	g.weight = in.Float64()
	for range in.Count(100, keptRivals+2) {
		r := &rival{revision: int(in.Int("revision", 0, 1<<40)), encoded: slices.Clone(in.Bytes(binenc.MaxBytes))}
		for k := range r.logR {
			if r.logR[k] = in.Float64(); math.IsNaN(r.logR[k]) {
				in.Failf("log R is not a number")
			}
		}
		r.rows, r.from = in.Varint(), in.Varint()
		readFloats(in, &r.w, &r.inForce, &r.itself)
		if in.Err() != nil {
			return in.Err()
		}
		var err error
		if r.cal, err = calibrator.Decode(r.encoded); err != nil {
			return err
		}
		g.rivals = append(g.rivals, r)
	}
	if in.Err() == nil && len(g.rivals) == 0 {
		return errors.New("a calibrator without one before it")
	}
	return in.Err()
}

func (tr *trial) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendString(dst, tr.reason)
	for _, v := range []int64{int64(tr.base), tr.started, tr.due, tr.fitRows, tr.fitFrom, tr.fitTo, tr.rows, tr.testTo, tr.stageFrom, int64(tr.chosen)} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst = append(dst, tr.phase)
	dst = binenc.AppendFixed64(dst, tr.seed)
	dst = binenc.AppendFloat64(dst, tr.weight)
	dst = binenc.AppendUvarint(dst, uint64(len(tr.methods)))
	for _, m := range tr.methods {
		dst = binenc.AppendString(dst, m)
	}
	dst = stage.AppendRows(stage.AppendRows(dst, tr.fit), tr.held)
	dst = tr.inForce.append(dst)
	dst = binenc.AppendUvarint(dst, uint64(len(tr.candidates)))
	var err error
	for _, c := range tr.candidates {
		if dst, err = c.append(dst); err != nil {
			return dst, err
		}
	}
	if dst, err = appendTest(dst, tr.worse); err != nil {
		return dst, err
	}
	return binenc.AppendString(dst, tr.digest), nil
}

func (tr *trial) restore(r *binenc.Reader) error {
	tr.reason = r.String(binenc.MaxName)
	tr.base = int(r.Varint())
	for _, v := range []*int64{&tr.started, &tr.due, &tr.fitRows, &tr.fitFrom, &tr.fitTo, &tr.rows, &tr.testTo, &tr.stageFrom} {
		*v = r.Varint()
	}
	tr.chosen = int(r.Varint())
	tr.phase = r.Byte()
	tr.seed = r.Fixed64()
	tr.weight = r.Float64()
	for range r.Count(1, maxCandidates) {
		tr.methods = append(tr.methods, r.String(binenc.MaxName))
	}
	tr.fit, tr.held = stage.RestoreRows(r), stage.RestoreRows(r)
	tr.inForce.restore(r)
	for range r.Count(8, maxCandidates) {
		c := &candidate{}
		if err := c.restore(r); err != nil {
			return err
		}
		tr.candidates = append(tr.candidates, c)
	}
	var err error
	if tr.worse, err = restoreTest(r); err != nil {
		return err
	}
	tr.digest = r.String(binenc.MaxName)
	if r.Err() == nil && (tr.phase > phaseCanary || tr.phase == phaseCanary && (tr.worse == nil || tr.chosen < 0 || tr.chosen >= len(tr.candidates) ||
		tr.candidates[tr.chosen].cal == nil)) {
		return fmt.Errorf("refit in phase %d with %d candidates, chosen %d", tr.phase, len(tr.candidates), tr.chosen)
	}
	return r.Err()
}

// maxCandidates bounds what a checkpoint may claim.
const maxCandidates = 64

func (c *candidate) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendString(dst, c.method)
	failed := ""
	if c.err != nil {
		failed = c.err.Error()
	}
	dst = binenc.AppendString(binenc.AppendString(dst, failed), c.out)
	dst = append(dst, binenc.Flags(c.onBound))
	dst = binenc.AppendUvarint(dst, uint64(len(c.warnings)))
	for _, w := range c.warnings {
		dst = binenc.AppendString(dst, w)
	}
	dst = binenc.AppendBytes(dst, c.encoded)
	dst = c.score.append(dst)
	return appendTest(appendFloats(dst, c.wd, c.w2d, c.w2d2), c.test)
}

func (c *candidate) restore(r *binenc.Reader) error {
	c.method = r.String(binenc.MaxName)
	if failed := r.String(binenc.MaxItems); failed != "" {
		c.err = errors.New(failed)
	}
	c.out = r.String(binenc.MaxItems)
	c.onBound = r.Byte() == 1
	for range r.Count(1, binenc.MaxItems) {
		c.warnings = append(c.warnings, r.String(binenc.MaxItems))
	}
	c.encoded = slices.Clone(r.Bytes(binenc.MaxBytes))
	c.score.restore(r)
	readFloats(r, &c.wd, &c.w2d, &c.w2d2)
	var err error
	if c.test, err = restoreTest(r); err != nil || r.Err() != nil {
		return errors.Join(err, r.Err())
	}
	if c.out == "" && (c.test == nil || len(c.encoded) == 0) {
		return fmt.Errorf("candidate %s without a calibrator or a test", c.method)
	}
	if len(c.encoded) > 0 {
		c.cal, err = calibrator.Decode(c.encoded)
	}
	return err
}

func (s *score) append(dst []byte) []byte {
	dst = appendFloats(dst, s.w, s.w2, s.nll, s.hits)
	for i := range s.bins {
		b := &s.bins[i]
		dst = appendFloats(binenc.AppendVarint(dst, b.N), b.W, b.SumC, b.SumA)
	}
	return dst
}

func (s *score) restore(r *binenc.Reader) {
	readFloats(r, &s.w, &s.w2, &s.nll, &s.hits)
	for i := range s.bins {
		b := &s.bins[i]
		b.N = r.Varint()
		readFloats(r, &b.W, &b.SumC, &b.SumA)
	}
}

// appendTest appends a test or its absence.
func appendTest(dst []byte, p *evalue.Paired) ([]byte, error) {
	if p == nil {
		return binenc.AppendUvarint(dst, 0), nil
	}
	return binenc.AppendBlock(dst, p.AppendBinary)
}

func restoreTest(r *binenc.Reader) (*evalue.Paired, error) {
	b := r.Bytes(binenc.MaxItems)
	if len(b) == 0 {
		return nil, r.Err()
	}
	p := new(evalue.Paired)
	return p, p.UnmarshalBinary(b)
}

func appendFloats(dst []byte, v ...float64) []byte {
	for _, x := range v {
		dst = binenc.AppendFloat64(dst, x)
	}
	return dst
}

func readFloats(r *binenc.Reader, v ...*float64) {
	for _, p := range v {
		*p = r.Float64()
	}
}
