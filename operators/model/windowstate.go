package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
)

// windowsNamed stands where builds before it wrote the number of windows, which stood for those of the configuration in their order.
const windowsNamed = 1 << 32

// print tells windows apart whose state means different things.
func (s *WindowSpec) print() string {
	return fmt.Sprint(s.Kind, " ", s.size(), " ", s.slide(), " ", s.Rows, " ", s.Every)
}

func (k *keyState) appendWindows(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, windowsNamed)
	dst = binenc.AppendUvarint(dst, uint64(len(k.windows)))
	var err error
	for _, w := range k.windows {
		dst = binenc.AppendString(binenc.AppendString(dst, w.spec.Name), w.spec.print())
		if dst, err = w.append(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// restoreWindows reads windows. One that the configuration has not, or not like that, is left: one that is new begins without rows.
func (k *keyState) restoreWindows(r *binenc.Reader, d *acc.Decoder) error {
	n := r.Uvarint()
	named := n == windowsNamed
	if named {
		n = r.Uvarint()
	}
	for range min(n, binenc.MaxItems) {
		name, print := r.String(binenc.MaxName), ""
		if named {
			print = r.String(binenc.MaxName)
		}
		if r.Err() != nil {
			break
		}
		i := slices.IndexFunc(k.windows, func(w *window) bool { return w.spec.Name == name })
		w := newWindow(&WindowSpec{})
		if i >= 0 {
			w = newWindow(k.windows[i].spec)
		}
		if err := w.restore(r, d); err != nil {
			return fmt.Errorf("window %s: %w", name, err)
		}
		if i >= 0 && (print == w.spec.print() || !named && w.plausible()) {
			k.windows[i] = w
		}
	}
	return r.Err()
}

// plausible reports whether a window's state is one of its specification, as far as it shows.
func (w *window) plausible() bool {
	for _, b := range w.buckets {
		if b.end-b.start != w.spec.slide() {
			return false
		}
	}
	return (len(w.panes) == 0 || w.spec.Kind == "rows") && (len(w.buckets) == 0 || w.spec.Kind != "rows")
}

func (w *window) append(dst []byte) ([]byte, error) {
	dst = binenc.AppendBytes(dst, w.last)
	dst = append(dst, binenc.Flags(w.started))
	dst = binenc.AppendVarint(dst, w.final)
	dst = binenc.AppendVarint(dst, w.total)
	var err error
	dst = binenc.AppendUvarint(dst, uint64(len(w.buckets)))
	for _, i := range slices.Sorted(maps.Keys(w.buckets)) {
		dst = binenc.AppendVarint(dst, i)
		if dst, err = w.buckets[i].append(dst); err != nil {
			return dst, err
		}
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.dirty)))
	for _, i := range slices.Sorted(maps.Keys(w.dirty)) {
		dst = binenc.AppendVarint(dst, i)
	}
	dst = binenc.AppendUvarint(dst, uint64(len(w.panes)))
	for _, b := range w.panes {
		if dst, err = b.append(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (w *window) restore(r *binenc.Reader, d *acc.Decoder) error {
	w.last = slices.Clone(r.Bytes(binenc.MaxBytes))
	w.started = r.Byte() == 1
	w.final, w.total = r.Varint(), r.Varint()
	for range r.Count(4, binenc.MaxItems) {
		i := r.Varint()
		b := &bucket{}
		if err := b.restore(r, d); err != nil {
			return err
		}
		w.buckets[i] = b
	}
	for range r.Count(1, binenc.MaxItems) {
		w.dirty[r.Varint()] = true
	}
	for range r.Count(4, binenc.MaxItems) {
		b := &bucket{}
		if err := b.restore(r, d); err != nil {
			return err
		}
		w.panes = append(w.panes, b)
	}
	return r.Err()
}
