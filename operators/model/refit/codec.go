package refit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// mostSlow is the longest lag of slow labels that a state may have: ten times as long is a time too.
const mostSlow = math.MaxInt64 / 16

// Append appends the state.
func (s *State) Append(dst []byte) ([]byte, error) {
	dst = append(dst, binenc.Flags(s.started, s.quarters > 0, s.corrections.served.split(),
		s.corrections.served.powered(), s.withheld != 0, s.doubt.from != 0, s.delays.Slow > 0))
	if s.quarters > 0 {
		dst = binenc.AppendUvarint(dst, uint64(s.quarters))
	}
	if s.withheld != 0 {
		dst = binenc.AppendVarint(dst, s.withheld)
	}
	if s.doubt.from != 0 {
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, s.doubt.from), s.doubt.before)
	}
	if s.delays.Slow > 0 {
		dst = binenc.AppendUvarint(binenc.AppendVarint(dst, s.delays.Seen), uint64(s.delays.Slow))
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, s.delays.Newest), s.delays.Steady)
	}
	dst = binenc.AppendVarint(dst, s.period)
	dst = binenc.AppendVarint(dst, s.alarmAt)
	dst = binenc.AppendUvarint(dst, uint64(s.revision))
	last := &s.version.Decision
	dst = binenc.AppendUvarint(binenc.AppendVarint(dst, last.At), uint64(last.Revision))
	dst = binenc.AppendUvarint(binenc.AppendFloat64(last.Append(dst), s.unit), uint64(len(s.changes)))
	for _, since := range s.changes {
		dst = binenc.AppendVarint(dst, since)
	}
	dst = append(dst, binenc.Flags(s.pin != nil))
	if s.pin != nil {
		dst = binenc.AppendVarint(binenc.AppendString(binenc.AppendString(dst, s.pin.by), s.pin.why), s.pin.at)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(s.orders)))
	for _, id := range s.orders {
		dst = append(dst, id[:]...)
	}
	dst = append(dst, binenc.Flags(s.monitor != nil))
	if s.monitor != nil {
		dst = s.monitor.append(dst)
	}
	dst = s.account.append(dst)
	dst = append(dst, binenc.Flags(s.run != nil))
	if s.run != nil {
		var err error
		if dst, err = s.run.append(dst); err != nil {
			return dst, err
		}
	}
	dst = append(dst, binenc.Flags(s.quick != nil))
	if s.quick != nil {
		dst = s.quick.append(dst)
	}
	dst, err := s.corrections.append(dst)
	if err != nil {
		return dst, err
	}
	return s.online.append(dst), nil
}

// Restore reads what Append wrote. It refuses a state that does not fit the version.
func (s *State) Restore(in *binenc.Reader) error {
	flags := in.Byte()
	if s.started = flags&1 != 0; flags&2 != 0 {
		s.quarters = int(in.Int("quarters of the rarest class", 1, mostQuarters))
	}
	if flags&16 != 0 {
		s.withheld = in.Varint()
	}
	if flags&32 != 0 {
		s.doubt = doubt{from: in.Varint(), before: in.Varint()}
	}
	if flags&64 != 0 {
		s.delays = stage.Delays{Seen: in.Varint(), Slow: in.Int("lag of slow labels", 1, mostSlow),
			Newest: in.Varint(), Steady: in.Varint()}
	}
	s.period, s.alarmAt, s.revision = in.Varint(), in.Varint(), int(in.Int("revision", 0, 1<<40))
	s.version.Decision = stage.Decision{At: in.Varint(), Revision: int(in.Int("revision", 0, 1<<40))}
	s.version.Decision.Restore(in)
	s.unit = in.Float64()
	for range in.Count(1, keptChanges) {
		s.changes.note(in.Varint())
	}
	if in.Byte() == 1 {
		s.pin = &pin{by: in.String(binenc.MaxName), why: in.String(binenc.MaxName), at: in.Varint()}
	}
	for range in.Count(16, keptOrders) {
		s.orders = append(s.orders, [16]byte(in.Raw(16)))
	}
	if in.Byte() == 1 {
		s.monitor = &monitor{}
		if err := s.monitor.restore(in, s.version.K); err != nil {
			return err
		}
	}
	s.account.restore(in)
	if in.Byte() == 1 {
		s.run = &run{}
		if err := s.run.restore(in, s.version.K); err != nil {
			return err
		}
	}
	if in.Byte() == 1 {
		s.quick = newQuick(s.publisher)
		s.quick.restore(in)
	}
	if err := s.corrections.restore(in, flags&4 != 0, flags&8 != 0); err != nil {
		return err
	}
	if err := s.online.restore(in); err != nil {
		return err
	}
	return in.Err()
}

func (q *quick) append(dst []byte) []byte {
	dst = binenc.AppendFloat64(binenc.AppendUvarint(dst, uint64(q.base)), q.weight)
	dst = binenc.AppendUvarint(binenc.AppendVarint(binenc.AppendVarint(dst, q.rows), int64(q.up)), uint64(len(q.turns)))
	for _, row := range q.turns {
		dst = binenc.AppendVarint(dst, row)
	}
	for i := range q.trackers {
		t := &q.trackers[i]
		dst = binenc.AppendFloat64s(dst, t.t, t.logR, t.gain)
		dst = binenc.AppendVarint(binenc.AppendVarint(binenc.AppendVarint(dst, int64(t.due)), t.from), t.rows)
	}
	return dst
}

func (q *quick) restore(in *binenc.Reader) {
	q.base, q.weight = int(in.Int("revision", 0, 1<<40)), in.Float64()
	q.rows, q.up = in.Varint(), int(in.Varint())
	for range in.Count(1, keptTurns) {
		q.turns = append(q.turns, in.Varint())
	}
	for i := range q.trackers {
		t := &q.trackers[i]
		if t.t = in.Float64(); t.t != 0 && !(t.t >= calibrator.MinTemperature && t.t <= calibrator.MaxTemperature) {
			in.Failf("temperature %v, want %v to %v", t.t, calibrator.MinTemperature, calibrator.MaxTemperature)
		}
		if readFloats(in, &t.logR, &t.gain); math.IsNaN(t.logR) || math.IsNaN(t.gain) {
			in.Failf("log R is %v, its gain %v", t.logR, t.gain)
		}
		t.due, t.from, t.rows = int(in.Varint()), in.Varint(), in.Varint()
	}
}

func (a *account) append(dst []byte) []byte {
	dst = binenc.AppendVarint(binenc.AppendFloat64(dst, a.lost), a.since)
	return binenc.AppendVarint(binenc.AppendUvarint(dst, uint64(a.returns)), a.rest)
}

func (a *account) restore(in *binenc.Reader) {
	if a.lost = in.Float64(); math.IsNaN(a.lost) {
		in.Failf("what was lost to the raw scores is not a number")
	}
	a.since, a.returns = in.Varint(), int(in.Int("returns", 0, mostReturns))
	if a.rest = in.Varint(); a.rest < 0 {
		in.Failf("%d rows until something may take force", a.rest)
	}
}

func (m *monitor) append(dst []byte) []byte {
	dst = binenc.AppendFloat64s(binenc.AppendFloat64(dst, m.weight), m.fell[:]...)
	dst = binenc.AppendUvarint(dst, uint64(len(m.baselines)))
	for _, b := range m.baselines {
		dst = binenc.AppendBytes(binenc.AppendUvarint(dst, uint64(b.revision)), b.encoded)
		dst = binenc.AppendFloat64s(binenc.AppendUvarint(dst, uint64(len(b.allowed))), b.allowed...)
		dst = binenc.AppendFloat64s(binenc.AppendFloat64s(dst, b.nll[:]...), b.acc[:]...)
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, b.rows), b.from)
		dst = binenc.AppendFloat64s(dst, b.w, b.inForce, b.itself, b.hits, b.itsHits)
	}
	return dst
}

func (w *wealth) restore(in *binenc.Reader) {
	for k := range w {
		if w[k] = in.Float64(); math.IsNaN(w[k]) {
			in.Failf("log R is not a number")
		}
	}
}

func (m *monitor) restore(in *binenc.Reader, k int) error {
	m.weight = in.Float64()
	m.fell.restore(in)
	for range in.Count(100, keptBaselines+2) {
		b := &baseline{revision: int(in.Int("revision", 0, 1<<40)), encoded: slices.Clone(in.Bytes(binenc.MaxBytes))}
		if n := in.Count(8, 1<<24); n > 0 {
			b.allowed = make([]float64, n)
			for y := range b.allowed {
				if b.allowed[y] = in.Float64(); n != k || !(b.allowed[y] >= 0 && b.allowed[y] <= 1) {
					in.Failf("accuracy of class %d of %d may fall by %v, want 0 to 1, K = %d", y, n, b.allowed[y], k)
				}
			}
		}
		for _, w := range []*wealth{&b.nll, &b.acc} {
			w.restore(in)
		}
		b.rows, b.from = in.Varint(), in.Varint()
		readFloats(in, &b.w, &b.inForce, &b.itself, &b.hits, &b.itsHits)
		if in.Err() != nil {
			return in.Err()
		}
		var err error
		if b.cal, err = decodeFor(b.encoded, k); err != nil {
			return fmt.Errorf("revision %d, before that in force: %w", b.revision, err)
		}
		m.baselines = append(m.baselines, b)
	}
	if in.Err() == nil && len(m.baselines) == 0 {
		return errors.New("a calibrator without one before it")
	}
	return in.Err()
}

// numbers returns the times and counts of a run's state.
func (r *run) numbers() []*int64 {
	return []*int64{&r.started, &r.due, &r.fitRows, &r.fitFrom, &r.fitTo, &r.rows, &r.testTo, &r.canaryFrom}
}

func (r *run) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendString(dst, r.reason)
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, int64(r.base)), int64(r.chosen))
	for _, v := range r.numbers() {
		dst = binenc.AppendVarint(dst, *v)
	}
	dst = append(dst, r.phase)
	dst = binenc.AppendFixed64(dst, r.seed)
	dst = binenc.AppendFloat64(dst, r.weight)
	dst = binenc.AppendUvarint(dst, uint64(len(r.methods)))
	for _, m := range r.methods {
		dst = binenc.AppendString(dst, m)
	}
	dst = stage.AppendRows(stage.AppendRows(dst, r.fit), r.held)
	dst = r.inForce.append(dst)
	dst = binenc.AppendUvarint(dst, uint64(len(r.candidates)))
	var err error
	for _, c := range r.candidates {
		if dst, err = c.append(dst); err != nil {
			return dst, err
		}
	}
	if dst, err = appendTest(dst, r.worse); err != nil {
		return dst, err
	}
	return binenc.AppendString(dst, r.digest), nil
}

func (r *run) restore(in *binenc.Reader, k int) error {
	r.reason = in.String(binenc.MaxName)
	r.base, r.chosen = int(in.Varint()), int(in.Varint())
	for _, v := range r.numbers() {
		*v = in.Varint()
	}
	r.phase = in.Byte()
	r.seed = in.Fixed64()
	r.weight = in.Float64()
	for range in.Count(1, maxCandidates) {
		r.methods = append(r.methods, in.String(binenc.MaxName))
	}
	r.fit, r.held = stage.RestoreRows(in, k), stage.RestoreRows(in, k)
	r.inForce.restore(in)
	for range in.Count(8, maxCandidates) {
		c := &candidate{}
		if err := c.restore(in, k); err != nil {
			return fmt.Errorf("candidate %s: %w", c.method, err)
		}
		r.candidates = append(r.candidates, c)
	}
	var err error
	if r.worse, err = restoreTest(in); err != nil {
		return err
	}
	r.digest = in.String(binenc.MaxName)
	if in.Err() == nil && (r.phase > phaseCanary || r.phase == phaseCanary && !r.hasCanary()) {
		return fmt.Errorf("refit in phase %d with %d candidates, chosen %d", r.phase, len(r.candidates), r.chosen)
	}
	return in.Err()
}

// hasCanary reports whether a restored run has the state that a canary needs.
func (r *run) hasCanary() bool {
	return r.worse != nil && r.chosen >= 0 && r.chosen < len(r.candidates) && r.candidates[r.chosen].cal != nil
}

// maxCandidates limits the number of candidates that a checkpoint may contain.
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
	return appendTest(binenc.AppendFloat64s(dst, c.wd, c.w2d, c.w2d2), c.test)
}

func (c *candidate) restore(in *binenc.Reader, k int) error {
	c.method = in.String(binenc.MaxName)
	if failed := in.String(binenc.MaxItems); failed != "" {
		c.err = errors.New(failed)
	}
	c.out = in.String(binenc.MaxItems)
	c.onBound = in.Byte() == 1
	for range in.Count(1, binenc.MaxItems) {
		c.warnings = append(c.warnings, in.String(binenc.MaxItems))
	}
	c.encoded = slices.Clone(in.Bytes(binenc.MaxBytes))
	c.score.restore(in)
	readFloats(in, &c.wd, &c.w2d, &c.w2d2)
	var err error
	if c.test, err = restoreTest(in); err != nil || in.Err() != nil {
		return errors.Join(err, in.Err())
	}
	if c.out == "" && (c.test == nil || len(c.encoded) == 0) {
		return errors.New("no calibrator, or no test")
	}
	if len(c.encoded) > 0 {
		c.cal, err = decodeFor(c.encoded, k)
	}
	return err
}

func (s *score) append(dst []byte) []byte {
	dst = binenc.AppendFloat64s(dst, s.w, s.w2, s.nll, s.hits)
	for i := range s.bins {
		b := &s.bins[i]
		dst = binenc.AppendFloat64s(binenc.AppendVarint(dst, b.N), b.W, b.SumC, b.SumA)
	}
	return dst
}

func (s *score) restore(in *binenc.Reader) {
	readFloats(in, &s.w, &s.w2, &s.nll, &s.hits)
	for i := range s.bins {
		b := &s.bins[i]
		b.N = in.Varint()
		readFloats(in, &b.W, &b.SumC, &b.SumA)
	}
}

// decodeFor decodes a calibrator, and refuses one that is not for K classes: it would panic later.
func decodeFor(encoded []byte, k int) (calibrator.Calibrator, error) {
	cal, err := calibrator.Decode(encoded)
	if err == nil && !calibrator.Fits(cal, k) {
		err = fmt.Errorf("the calibrator is not one for K = %d", k)
	}
	return cal, err
}

// appendTest appends a test, or a mark that there is none.
func appendTest(dst []byte, p *evalue.Paired) ([]byte, error) {
	if p == nil {
		return binenc.AppendUvarint(dst, 0), nil
	}
	return binenc.AppendBlock(dst, p.AppendBinary)
}

func restoreTest(in *binenc.Reader) (*evalue.Paired, error) {
	b := in.Bytes(binenc.MaxItems)
	if len(b) == 0 {
		return nil, in.Err()
	}
	p := new(evalue.Paired)
	return p, p.UnmarshalBinary(b)
}

func readFloats(in *binenc.Reader, v ...*float64) {
	for _, p := range v {
		*p = in.Float64()
	}
}
