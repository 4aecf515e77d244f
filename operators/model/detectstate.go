package model

import (
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// detectFollows stands where builds before it wrote the number of rules: the state of alarms and rules follows, as a block
// with a version of its own.
const detectFollows = 1 << 32

// Versions of the state of alarms and rules.
const (
	detectVersion1 = 1 // rules by their order
	detectVersion2 = 2 // rules by name and print
)

// appendDetect appends the state of rules and alarms of a key.
func (k *keyState) appendDetect(dst []byte) ([]byte, error) {
	dst = append(dst, detectVersion2)
	dst = binenc.AppendUvarint(dst, uint64(len(k.rules)))
	for i := range k.rules {
		dst = binenc.AppendString(binenc.AppendString(dst, k.specs[i].Name), k.specs[i].print())
		dst = k.rules[i].append(dst)
		dst = k.appendLook(dst, i)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(k.alarms)))
	for _, a := range k.alarms {
		dst = binenc.AppendString(dst, a.signal)
		var err error
		if dst, err = binenc.AppendBlock(dst, a.append); err != nil {
			return dst, err
		}
	}
	if k.drift == nil {
		return binenc.AppendBytes(dst, nil), nil
	}
	return binenc.AppendBlock(dst, k.drift.append)
}

// restoreRules reads what appendDetect wrote, or the rules of a checkpoint from before it.
func (k *keyState) restoreRules(r *binenc.Reader, cfg *ModelConfig) error {
	n := r.Uvarint()
	if n == detectFollows {
		in := binenc.NewReader(r.Bytes(maxBlob))
		if err := r.Err(); err != nil {
			return err
		}
		return k.restoreDetect(&in, cfg)
	}
	var stored []storedRule
	for range min(n, binenc.MaxItems) {
		var s storedRule
		s.state.restoreOld(r)
		if r.Err() != nil {
			return r.Err()
		}
		stored = append(stored, s)
	}
	k.adoptOrdered(stored, cfg)
	return r.Err()
}

func (k *keyState) restoreDetect(r *binenc.Reader, cfg *ModelConfig) error {
	version := r.Byte()
	if r.Err() == nil && version != detectVersion1 && version != detectVersion2 {
		r.Failf("rules and alarms of version %d, this build reads %d and %d", version, detectVersion1, detectVersion2)
	}
	var stored []storedRule
	for range r.Count(7, binenc.MaxItems) {
		var s storedRule
		if version == detectVersion2 {
			s.name, s.print = r.String(binenc.MaxName), r.String(binenc.MaxName)
		}
		s.state.restore(r)
		if s.look = r.Bytes(maxBlob); r.Err() != nil {
			return r.Err()
		}
		stored = append(stored, s)
	}
	if version == detectVersion2 {
		k.adopt(stored, cfg)
	} else {
		k.adoptOrdered(stored, cfg)
	}
	return k.restoreAlarms(r, cfg)
}

func (k *keyState) restoreAlarms(r *binenc.Reader, cfg *ModelConfig) error {
	for range r.Count(2, binenc.MaxItems) {
		signal := r.String(binenc.MaxName)
		body := r.Bytes(maxBlob)
		if r.Err() != nil {
			break
		}
		if a := k.alarm(signal); a != nil {
			if err := a.restore(body, cfg.Alarm); err != nil {
				return fmt.Errorf("alarm on %s: %w", signal, err)
			}
		} else if err := k.switchedOff(body); err != nil {
			return fmt.Errorf("alarm on %s, which is switched off: %w", signal, err)
		}
	}
	if drift := r.Bytes(maxBlob); k.drift != nil && len(drift) > 0 {
		if err := k.drift.restore(drift); err != nil {
			return fmt.Errorf("reference of confidences: %w", err)
		}
	}
	return r.Close()
}

// appendLook appends what rule i looks at.
func (k *keyState) appendLook(dst []byte, i int) []byte {
	if i >= len(k.looks) || k.looks[i] == nil {
		return binenc.AppendBytes(dst, nil)
	}
	// Floats of the sums make no block so large that copying it matters.
	return binenc.AppendBytes(dst, k.looks[i].append(nil))
}

var ruleStates = []string{ruleOK, pending, firing}

func (r *ruleState) append(dst []byte) []byte {
	dst = append(dst, byte(slices.Index(ruleStates, r.state)))
	for _, v := range []int64{r.since, r.overFrom, r.clearFrom, r.lastChange} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst = binenc.AppendBytes(dst, r.last)
	dst = append(binenc.AppendString(dst, r.inhibitedBy), binenc.Flags(r.told))
	return binenc.AppendVarint(dst, r.holdFrom)
}

func (r *ruleState) restore(in *binenc.Reader) {
	r.restoreOld(in)
	r.inhibitedBy, r.told, r.holdFrom = in.String(maxBlob), in.Byte() == 1, in.Varint()
}

// restoreOld reads a rule as checkpoints before detectFollows have it. A rule that fires had told so.
func (r *ruleState) restoreOld(in *binenc.Reader) {
	r.state = ruleStates[min(int(in.Byte()), len(ruleStates)-1)]
	r.since, r.overFrom, r.clearFrom, r.lastChange = in.Varint(), in.Varint(), in.Varint(), in.Varint()
	r.last = slices.Clone(in.Bytes(maxBlob))
	r.told = r.state == firing
}

// append appends the alarm: its specification, state, tests, curve, waiting rows and what may resolve it.
func (a *keyAlarm) append(dst []byte) ([]byte, error) {
	dst = a.alert.append(binenc.AppendString(dst, a.print))
	dst = binenc.AppendUvarint(dst, a.bins)
	dst = append(dst, binenc.Flags(a.curve != nil), binenc.Flags(a.tests != nil))
	if a.curve != nil {
		dst = a.curve.append(dst)
	}
	dst = a.since.append(a.waiting.append(dst))
	if a.tests == nil {
		return dst, nil
	}
	return binenc.AppendBlock(dst, a.tests.AppendBinary)
}

// restore reads what append wrote. Where the specification is another one now, the tests begin anew: what fires goes on
// firing until new rows say that it is over.
func (a *keyAlarm) restore(body []byte, s *AlarmSpec) error {
	r := binenc.NewReader(body)
	n := newKeyAlarm(s, a.signal, a.slice)
	print := r.String(binenc.MaxName)
	n.alert.restore(&r)
	if err := r.Err(); err != nil {
		return err
	}
	if print != n.print {
		*a = *n
		return nil
	}
	n.bins = r.Uvarint()
	curve, tests := r.Byte() == 1, r.Byte() == 1
	if curve != (n.curve != nil) {
		r.Failf("reference curve: %v, the configuration says %q", curve, s.reference(a.signal))
		return r.Err()
	}
	if curve {
		n.curve.restore(&r, s.Bins)
		if n.curve.inForce != nil && r.Err() == nil {
			n.tests = s.fresh(a.signal, a.slice, n.curve.inForce)
		}
	}
	n.waiting.restore(&r, s.Bins)
	n.since.restore(&r, s.Bins)
	if tests {
		state := r.Bytes(maxBlob)
		if r.Err() == nil && n.tests != nil {
			if err := n.tests.UnmarshalBinary(state); err != nil {
				return err
			}
		}
	}
	if err := r.Close(); err != nil {
		return err
	}
	*a = *n
	return nil
}
