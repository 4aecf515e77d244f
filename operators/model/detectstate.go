package model

import (
	"fmt"

	"github.com/plumbline/plumbline/internal/binenc"
)

const detectVersion = 1

// appendDetect appends the state of rules and alarms of a key.
func (k *keyState) appendDetect(dst []byte) ([]byte, error) {
	dst = append(dst, detectVersion)
	dst = binenc.AppendUvarint(dst, uint64(len(k.rules)))
	for i := range k.rules {
		dst = binenc.AppendString(binenc.AppendString(dst, k.specs[i].Name), k.specs[i].print())
		dst = k.rules[i].Append(dst)
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

// restoreDetect reads what appendDetect wrote.
func (k *keyState) restoreDetect(r *binenc.Reader, cfg *ModelConfig) error {
	r.Version(detectVersion)
	var stored []storedRule
	for range r.Count(7, binenc.MaxItems) {
		var s storedRule
		s.name, s.print = r.String(binenc.MaxName), r.String(binenc.MaxName)
		s.state.Restore(r)
		if s.look = r.Bytes(binenc.MaxBytes); r.Err() != nil {
			return r.Err()
		}
		stored = append(stored, s)
	}
	k.adopt(stored, cfg)
	return k.restoreAlarms(r, cfg)
}

func (k *keyState) restoreAlarms(r *binenc.Reader, cfg *ModelConfig) error {
	for range r.Count(2, binenc.MaxItems) {
		signal := r.String(binenc.MaxName)
		body := r.Bytes(binenc.MaxBytes)
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
	if drift := r.Bytes(binenc.MaxBytes); k.drift != nil && len(drift) > 0 {
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

// append appends the alarm: its specification, state, tests, curve, waiting rows and what may resolve it.
func (a *keyAlarm) append(dst []byte) ([]byte, error) {
	dst = a.alert.Append(binenc.AppendString(dst, a.print))
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
	n.alert.Restore(&r)
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
		state := r.Bytes(binenc.MaxBytes)
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
