package model

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/plumbline/plumbline/operators/model/stage"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// loopState is the section of a model task's checkpoint with triggers and judges.
type loopState struct{ t *ModelTask }

// AppendState implements pipeline.State: by model and version the loops that are not idle.
func (s loopState) AppendState(dst []byte) ([]byte, error) {
	var err error
	for _, model := range slices.Sorted(maps.Keys(s.t.loops)) {
		if dst, err = s.t.appendLoops(dst, model); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendLoops appends those of a model; nothing where all are idle.
func (t *ModelTask) appendLoops(dst []byte, model string) ([]byte, error) {
	for _, version := range slices.Sorted(maps.Keys(t.loops[model])) {
		l := t.loops[model][version]
		if l.idle() {
			continue
		}
		dst = binenc.AppendString(binenc.AppendString(append(dst, 1), model), version)
		var err error
		if dst, err = l.append(dst); err != nil {
			return dst, fmt.Errorf("loop of %s version %q: %w", model, version, err)
		}
	}
	return dst, nil
}

// RestoreState implements pipeline.State. The section of the models was restored before.
func (s loopState) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	for r.Err() == nil && r.Len() > 0 {
		r.Byte()
		model, version := r.String(binenc.MaxName), r.String(binenc.MaxName)
		if r.Err() != nil {
			break
		}
		m := s.t.models[model]
		if m == nil || m.versions[version] == nil {
			return fmt.Errorf("loop of %s version %q, which the checkpoint has not", model, version)
		}
		want, err := s.t.env.NewSums(m.versions[version].K)
		if err != nil {
			return err
		}
		if err := s.t.loopOf(m, version).restore(&r, want.Config()); err != nil {
			return fmt.Errorf("loop of %s version %q: %w", model, version, err)
		}
	}
	return r.Close()
}

func (l *loop) append(dst []byte) ([]byte, error) {
	dst, err := stage.AppendSet(dst, l.reference)
	if err != nil {
		return dst, err
	}
	dst = binenc.AppendUvarint(dst, uint64(len(l.blocks)))
	for i := range l.blocks {
		b := &l.blocks[i]
		for _, x := range []int64{b.start, b.end, b.from, b.rows} {
			dst = binenc.AppendVarint(dst, x)
		}
		if dst, err = stage.AppendSet(dst, b.set); err != nil {
			return dst, err
		}
	}
	dst = binenc.AppendString(dst, l.over.reason)
	for _, x := range []int64{l.over.since, l.over.from, l.over.rows, int64(l.number), l.tried.at, int64(l.tried.revision)} {
		dst = binenc.AppendVarint(dst, x)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(l.asked)))
	for _, at := range l.asked {
		dst = binenc.AppendVarint(dst, at)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(l.judges)))
	for _, j := range l.judges {
		if dst, err = j.append(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (l *loop) restore(r *binenc.Reader, shape acc.Config) error {
	var err error
	if l.reference, err = restoreSums(r, shape); err != nil {
		return err
	}
	for range r.Count(5, binenc.MaxItems) {
		b := triggerBlock{start: r.Varint(), end: r.Varint(), from: r.Varint(), rows: r.Varint()}
		if b.set, err = restoreSums(r, shape); err != nil {
			return err
		}
		if b.set == nil {
			return fmt.Errorf("a block without statistics")
		}
		l.blocks = append(l.blocks, b)
	}
	l.over = overState{reason: r.String(binenc.MaxName), since: r.Varint(), from: r.Varint(), rows: r.Varint()}
	l.number = int(r.Varint())
	l.tried = triedState{r.Varint(), int(r.Varint())}
	for range r.Count(1, binenc.MaxItems) {
		l.asked = append(l.asked, r.Varint())
	}
	for range r.Count(5, binenc.MaxItems) {
		j := &judge{}
		if err := j.restore(r, shape); err != nil {
			return fmt.Errorf("head %d: %w", j.number, err)
		}
		l.judges = append(l.judges, j)
	}
	return r.Err()
}

// restoreSums reads a set, nil where there is none, and refuses one of another shape.
func restoreSums(r *binenc.Reader, shape acc.Config) (*acc.Set, error) {
	s, err := stage.RestoreSet(r, new(acc.Decoder))
	if err != nil || s == nil {
		return nil, err
	}
	return s, stage.CheckShape(s, shape)
}

var judgeStates = []string{statePending, record.ShadowRunning, record.ShadowReady, record.ShadowRejected, record.ShadowRolled, record.ShadowLost}

func (j *judge) append(dst []byte) ([]byte, error) {
	dst = append(binenc.AppendUvarint(dst, uint64(j.number)), byte(slices.Index(judgeStates, j.state)))
	for _, x := range []int64{j.deadline, j.readyAt, j.until} {
		dst = binenc.AppendVarint(dst, x)
	}
	dst = append(binenc.AppendBytes(dst, j.last), binenc.Flags(j.pairs != nil))
	p := j.pairs
	if p == nil {
		return dst, nil
	}
	for _, x := range []int64{p.rows, p.from, p.to} {
		dst = binenc.AppendVarint(dst, x)
	}
	dst = binenc.AppendFloat64(binenc.AppendFloat64(dst, p.nll[0]), p.nll[1])
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

func (j *judge) restore(r *binenc.Reader, shape acc.Config) error {
	j.number = int(r.Int("number", 1, math.MaxInt32))
	j.state = judgeStates[r.Int("state", 0, int64(len(judgeStates))-1)]
	j.deadline, j.readyAt, j.until = r.Varint(), r.Varint(), r.Varint()
	j.last = slices.Clone(r.Bytes(binenc.MaxBytes))
	if r.Byte() == 0 || r.Err() != nil {
		return r.Err()
	}
	p := &pairs{rows: r.Varint(), from: r.Varint(), to: r.Varint(), nll: [2]float64{r.Float64(), r.Float64()}}
	for _, s := range []**acc.Set{&p.serving, &p.shadow} {
		var err error
		if *s, err = restoreSums(r, shape); err != nil {
			return err
		}
		if *s == nil {
			return fmt.Errorf("pairs without statistics")
		}
	}
	for _, e := range []**evalue.Paired{&p.better, &p.worse, &p.accuracy} {
		*e = new(evalue.Paired)
		if err := (*e).UnmarshalBinary(r.Bytes(binenc.MaxBytes)); err != nil {
			return err
		}
	}
	j.pairs = p
	return r.Err()
}
