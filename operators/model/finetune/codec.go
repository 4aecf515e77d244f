package finetune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Append appends the state of all versions that are not idle, by name.
func (m *Model) Append(dst []byte) ([]byte, error) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.states)) {
		if !m.states[name].idle() {
			names = append(names, name)
		}
	}
	dst = binenc.AppendUvarint(dst, uint64(len(names)))
	for _, name := range names {
		var err error
		if dst, err = m.states[name].append(binenc.AppendString(dst, name)); err != nil {
			return dst, fmt.Errorf("heads of version %q: %w", name, err)
		}
	}
	return dst, nil
}

// Restore reads what Append wrote. The versions must have been added before.
func (m *Model) Restore(in *binenc.Reader) error {
	for range in.Count(2, binenc.MaxItems) {
		name := in.String(binenc.MaxName)
		if in.Err() != nil {
			break
		}
		s := m.states[name]
		if s == nil {
			return fmt.Errorf("heads of version %q, which the checkpoint has not", name)
		}
		want, err := m.stage.env.NewSums(s.version.K)
		if err != nil {
			return err
		}
		if err := s.restore(in, want.Settings()); err != nil {
			return fmt.Errorf("heads of version %q: %w", name, err)
		}
	}
	return in.Err()
}

func (s *state) append(dst []byte) ([]byte, error) {
	dst, err := stage.AppendSet(dst, s.reference)
	if err != nil {
		return dst, err
	}
	dst = binenc.AppendUvarint(dst, uint64(len(s.blocks)))
	for i := range s.blocks {
		b := &s.blocks[i]
		dst = appendVarints(dst, b.start, b.end, b.from, b.rows)
		if dst, err = stage.AppendSet(dst, b.set); err != nil {
			return dst, err
		}
	}
	dst = appendVarints(binenc.AppendString(dst, s.over.reason), s.over.since, s.over.from, s.over.rows)
	dst = appendVarints(dst, int64(s.number), s.tried.at, int64(s.tried.revision))
	dst = binenc.AppendUvarint(dst, uint64(len(s.asked)))
	dst = appendVarints(dst, s.asked...)
	dst = binenc.AppendUvarint(dst, uint64(len(s.evaluators)))
	for _, e := range s.evaluators {
		if dst, err = e.append(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (s *state) restore(in *binenc.Reader, shape acc.Config) error {
	var err error
	if s.reference, err = restoreSums(in, shape); err != nil {
		return err
	}
	for range in.Count(5, binenc.MaxItems) {
		b := block{start: in.Varint(), end: in.Varint(), from: in.Varint(), rows: in.Varint()}
		if b.set, err = restoreSums(in, shape); err != nil {
			return err
		}
		if b.set == nil {
			return fmt.Errorf("a block without statistics")
		}
		s.blocks = append(s.blocks, b)
	}
	s.over = excess{reason: in.String(binenc.MaxName), since: in.Varint(), from: in.Varint(), rows: in.Varint()}
	s.number = int(in.Varint())
	s.tried = tried{in.Varint(), int(in.Varint())}
	for range in.Count(1, binenc.MaxItems) {
		s.asked = append(s.asked, in.Varint())
	}
	for range in.Count(5, binenc.MaxItems) {
		e := &evaluator{}
		if err := e.restore(in, shape); err != nil {
			return fmt.Errorf("head %d: %w", e.number, err)
		}
		s.evaluators = append(s.evaluators, e)
	}
	return in.Err()
}

// restoreSums reads a set and refuses one of another shape. It returns nil if no set was written.
func restoreSums(in *binenc.Reader, shape acc.Config) (*acc.Set, error) {
	s, err := stage.RestoreSet(in, new(acc.Decoder))
	if err != nil || s == nil {
		return nil, err
	}
	return s, stage.CheckShape(s, shape)
}

var evaluatorStates = []string{statePending, record.ShadowRunning, record.ShadowReady, record.ShadowRejected,
	record.ShadowRolled, record.ShadowLost}

func (e *evaluator) append(dst []byte) ([]byte, error) {
	dst = append(binenc.AppendUvarint(dst, uint64(e.number)), byte(slices.Index(evaluatorStates, e.state)))
	dst = appendVarints(dst, e.deadline, e.readyAt, e.until)
	dst = append(binenc.AppendBytes(dst, e.last), binenc.Flags(e.pairs != nil))
	if e.pairs == nil {
		return dst, nil
	}
	return e.pairs.append(dst)
}

func (e *evaluator) restore(in *binenc.Reader, shape acc.Config) error {
	e.number = int(in.Int("number", 1, math.MaxInt32))
	e.state = evaluatorStates[in.Int("state", 0, int64(len(evaluatorStates))-1)]
	e.deadline, e.readyAt, e.until = in.Varint(), in.Varint(), in.Varint()
	e.last = slices.Clone(in.Bytes(binenc.MaxBytes))
	if in.Byte() == 0 || in.Err() != nil {
		return in.Err()
	}
	e.pairs = &pairs{}
	return e.pairs.restore(in, shape)
}

func (p *pairs) append(dst []byte) ([]byte, error) {
	dst = appendVarints(dst, p.rows, p.from, p.to)
	dst = binenc.AppendFloat64s(dst, p.nll[:]...)
	var err error
	for _, s := range []*acc.Set{p.serving, p.shadow} {
		if dst, err = stage.AppendSet(dst, s); err != nil {
			return dst, err
		}
	}
	for _, e := range []*evalue.Paired{p.better, p.worse, p.accuracy} {
		if dst, err = binenc.AppendBlock(dst, e.AppendBinary); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (p *pairs) restore(in *binenc.Reader, shape acc.Config) error {
	p.rows, p.from, p.to = in.Varint(), in.Varint(), in.Varint()
	p.nll = [2]float64{in.Float64(), in.Float64()}
	for _, s := range []**acc.Set{&p.serving, &p.shadow} {
		var err error
		if *s, err = restoreSums(in, shape); err != nil {
			return err
		}
		if *s == nil {
			return fmt.Errorf("pairs without statistics")
		}
	}
	for _, e := range []**evalue.Paired{&p.better, &p.worse, &p.accuracy} {
		*e = new(evalue.Paired)
		if err := (*e).UnmarshalBinary(in.Bytes(binenc.MaxBytes)); err != nil {
			return err
		}
	}
	return in.Err()
}

func appendVarints(dst []byte, v ...int64) []byte {
	for _, x := range v {
		dst = binenc.AppendVarint(dst, x)
	}
	return dst
}
