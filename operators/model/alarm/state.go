package alarm

import (
	"github.com/plumbline/plumbline/internal/binenc"
)

// append appends the alarm: its fingerprint, state, curve, waiting rows, the rows that may resolve it, tests and hard
// times.
func (a *keyAlarm) append(dst []byte) ([]byte, error) {
	dst = a.alert.Append(binenc.AppendString(dst, a.fingerprint))
	dst = binenc.AppendUvarint(dst, a.bins)
	dst = append(dst, binenc.Flags(a.curve != nil), binenc.Flags(a.tests != nil))
	if a.curve != nil {
		dst = a.curve.append(dst)
	}
	dst = a.waiting.Append(dst, func(dst []byte, m *maturing) []byte { return appendPane(dst, m.Pane) })
	dst = a.since.append(dst)
	if a.classes > 0 {
		dst = a.sinceByClass.append(binenc.AppendUvarint(dst, a.off))
	}
	if a.tests != nil {
		var err error
		if dst, err = binenc.AppendBlock(dst, a.tests.AppendBinary); err != nil {
			return dst, err
		}
	}
	if a.hard != nil {
		dst = a.hard.append(dst)
	}
	return dst, nil
}

// restore reads what append wrote. If the specification has changed, the tests start again, and a firing alert keeps
// firing until new rows show that the error is gone.
func (a *keyAlarm) restore(body []byte, s *spec) error {
	r := binenc.NewReader(body)
	n := newKeyAlarm(s, a.signal, a.slice, a.classes)
	fingerprint := r.String(binenc.MaxName)
	n.alert.Restore(&r)
	if err := r.Err(); err != nil {
		return err
	}
	if fingerprint != n.fingerprint {
		a.replace(n)
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
			n.tests = s.fresh(n, n.curve.inForce)
		}
	}
	n.waiting.Restore(&r, func(m *maturing) { m.Pane = restorePane(&r, s.Bins) })
	n.since.restore(&r, s.Bins)
	if n.classes > 0 {
		n.off = r.Uvarint()
		n.sinceByClass.restore(&r, n.classes)
		if a, b := len(n.since.blocks), len(n.sinceByClass.blocks); a != b {
			r.Failf("rows since the alarm in %d blocks, by class in %d", a, b)
		}
	}
	if tests {
		state := r.Bytes(binenc.MaxBytes)
		if r.Err() == nil && n.tests != nil {
			if err := n.tests.UnmarshalBinary(state); err != nil {
				return err
			}
		}
	}
	if n.hard != nil {
		n.hard.restore(&r)
	}
	if err := r.Close(); err != nil {
		return err
	}
	a.replace(n)
	return nil
}

// replace takes over the restored alarm n. The alert itself stays, because the key's list of alerts points to it.
func (a *keyAlarm) replace(n *keyAlarm) {
	a.alert.AlertState = n.alert.AlertState
	n.alert = a.alert
	*a = *n
}
