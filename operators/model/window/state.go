package window

import (
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
	dst = binenc.AppendUvarint(dst, uint64(len(s.windows)))
	for _, w := range s.windows {
		dst = binenc.AppendString(binenc.AppendString(dst, w.spec.Name), w.spec.fingerprint())
		dst = w.append(dst)
	}
	return dst, nil
}

// RestoreState implements stage.KeyState. It drops windows that are gone or are defined differently now. New windows
// start empty.
func (s *State) RestoreState(r *binenc.Reader, _ *acc.Decoder) error {
	sums, _, err := s.stage.env.Summaries(s.key.K)
	if err != nil {
		return err
	}
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
		if err := w.restore(r, sums); err != nil {
			return fmt.Errorf("window %s: %w", name, err)
		}
		if i >= 0 && fingerprint == w.spec.fingerprint() {
			s.windows[i] = w
		} else {
			delete(s.key.Snapshots, name)
		}
	}
	return r.Err()
}

func (w *window) append(dst []byte) []byte {
	dst = append(dst, binenc.Flags(w.started))
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
	dst = binenc.AppendUvarint(dst, uint64(len(w.panes)))
	for _, b := range w.panes {
		dst = b.append(dst)
	}
	return dst
}

func (w *window) restore(r *binenc.Reader, sums *acc.Summary) error {
	w.started = r.Byte() == 1
	w.final, w.total = r.Varint(), r.Varint()
	for range r.Count(4, binenc.MaxItems) {
		i := r.Varint()
		b := &bucket{}
		if err := b.restore(r, sums); err != nil {
			return err
		}
		w.buckets[i] = b
	}
	for range r.Count(1, binenc.MaxItems) {
		w.dirty[r.Varint()] = true
	}
	for range r.Count(4, binenc.MaxItems) {
		b := &bucket{}
		if err := b.restore(r, sums); err != nil {
			return err
		}
		w.panes = append(w.panes, b)
	}
	return r.Err()
}

func (b *bucket) append(dst []byte) []byte {
	for _, v := range []int64{b.start, b.end, b.late, b.labelled} {
		dst = binenc.AppendVarint(dst, v)
	}
	return b.cal.AppendBinary(b.raw.AppendBinary(dst))
}

func (b *bucket) restore(r *binenc.Reader, sums *acc.Summary) error {
	b.start, b.end, b.late, b.labelled = r.Varint(), r.Varint(), r.Varint(), r.Varint()
	var err error
	if b.raw, err = sums.Restore(r); err != nil {
		return err
	}
	b.cal, err = sums.Restore(r)
	return err
}
