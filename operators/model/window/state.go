package window

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// fingerprint identifies the definition. A saved state is restored only for an equal definition.
func (s *spec) fingerprint() string {
	return fmt.Sprint(s.Kind, " ", s.Size, " ", s.Slide, " ", s.Rows, " ", s.Every)
}

// AppendState implements stage.KeyState.
func (s *State) AppendState(dst []byte) ([]byte, error) {
	dst = append(dst, binenc.Flags(s.ofRows))
	dst = binenc.AppendUvarint(dst, uint64(len(s.windows)))
	for _, w := range s.windows {
		dst = binenc.AppendString(binenc.AppendString(dst, w.spec.Name), w.spec.fingerprint())
		dst = w.append(dst)
	}
	return dst, nil
}

// RestoreState implements stage.KeyState. It drops windows that are gone or are defined differently now, and those
// whose sums are too coarse for the bins that are configured now. New windows start empty.
func (s *State) RestoreState(r *binenc.Reader, _ *acc.Decoder) error {
	sums, _, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
	s.ofRows = r.Byte() == 1
	if s.ofRows && s.key.Slice != "" {
		r.Failf("windows of a slice without sums of labelled rows")
	}
	same := 0 // windows that are as they were
	for range r.Count(2, binenc.MaxItems) {
		name, fingerprint := r.String(binenc.MaxName), r.String(binenc.MaxName)
		if r.Err() != nil {
			break
		}
		i := slices.IndexFunc(s.windows, func(w *window) bool { return w.spec.Name == name })
		w := newWindow(Config{})
		if i >= 0 {
			w = newWindow(s.windows[i].spec.Config)
		}
		whole, err := w.restore(r, sums)
		if err != nil {
			return fmt.Errorf("window %s: %w", name, err)
		}
		if i >= 0 && whole && fingerprint == w.spec.fingerprint() {
			s.windows[i] = w
			same++
		} else {
			delete(s.key.Snapshots, name)
		}
	}
	if err := r.Err(); err != nil || !s.ofRows || same == len(s.windows) && s.stage.begins(s.key) {
		return err
	}
	return s.sumRows(s.key.Sample)
}

func (w *window) append(dst []byte) []byte {
	dst = append(dst, binenc.Flags(w.started, w.owed))
	dst = binenc.AppendVarint(dst, w.final)
	dst = binenc.AppendVarint(dst, w.total)
	dst = binenc.AppendUvarint(dst, uint64(len(w.buckets)))
	for _, i := range slices.Sorted(maps.Keys(w.buckets)) {
		dst = w.buckets[i].append(binenc.AppendVarint(dst, i))
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.dirty)))
	for _, i := range slices.Sorted(maps.Keys(w.dirty)) {
		dst = binenc.AppendVarint(dst, i)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.blocks)))
	for _, b := range w.blocks {
		dst = b.append(dst)
	}
	return dst
}

// restore reads what append wrote. whole is false if sums are too coarse for the configuration.
func (w *window) restore(r *binenc.Reader, sums *acc.Summary) (whole bool, err error) {
	flags := r.Byte()
	w.started, w.owed = flags&1 != 0, flags&2 != 0
	w.final, w.total = r.Varint(), r.Varint()
	whole = true
	next := func() (*bucket, error) {
		b := &bucket{}
		err := b.restore(r, sums)
		if errors.Is(err, acc.ErrCoarse) {
			whole, err = false, nil
		}
		return b, err
	}
	for range r.Count(4, binenc.MaxItems) {
		i := r.Varint()
		if w.buckets[i], err = next(); err != nil {
			return false, err
		}
	}
	for range r.Count(1, binenc.MaxItems) {
		w.dirty[r.Varint()] = true
	}
	for range r.Count(4, binenc.MaxItems) {
		b, err := next()
		if err != nil {
			return false, err
		}
		w.blocks = append(w.blocks, b)
	}
	return whole, r.Err()
}

func (b *bucket) append(dst []byte) []byte {
	for _, v := range []int64{b.start, b.end, b.late, b.labelled} {
		dst = binenc.AppendVarint(dst, v)
	}
	return b.cal.AppendBinary(b.raw.AppendBinary(dst))
}

func (b *bucket) restore(r *binenc.Reader, sums *acc.Summary) error {
	b.start, b.end, b.late, b.labelled = r.Varint(), r.Varint(), r.Varint(), r.Varint()
	var raw, cal error
	b.raw, raw = sums.Restore(r)
	b.cal, cal = sums.Restore(r)
	return errors.Join(raw, cal)
}
