package window

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// fingerprint identifies the definition. A saved state is restored only for an equal definition.
func (s *spec) fingerprint() string {
	return fmt.Sprint(s.Kind, " ", s.Size, " ", s.Slide, " ", s.Rows, " ", s.Every)
}

// AppendState implements stage.KeyState.
func (s *State) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendUvarint(dst, uint64(len(s.windows)))
	var err error
	for _, w := range s.windows {
		dst = binenc.AppendString(binenc.AppendString(dst, w.spec.Name), w.spec.fingerprint())
		if dst, err = w.append(dst); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// RestoreState implements stage.KeyState. It drops windows that are gone or are defined differently now. New windows
// start empty.
func (s *State) RestoreState(r *binenc.Reader, d *acc.Decoder) error {
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
		if err := w.restore(r, d); err != nil {
			return fmt.Errorf("window %s: %w", name, err)
		}
		if err := w.checkShapes(s.stage.shape(s.key)); err != nil {
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

// shape returns the configuration of the sums of a key.
func (t *Stage) shape(k *stage.Key) acc.Config {
	c := k.Version.Shape
	c.SampleRows = 0
	return c
}

// checkShapes refuses statistics of another configuration.
func (w *window) checkShapes(shape acc.Config) error {
	for _, b := range w.buckets {
		if err := b.checkShapes(shape); err != nil {
			return err
		}
	}
	for _, b := range w.panes {
		if err := b.checkShapes(shape); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) checkShapes(shape acc.Config) error {
	if err := stage.CheckShape(b.raw, shape); err != nil {
		return err
	}
	return stage.CheckShape(b.cal, shape)
}

func (w *window) append(dst []byte) ([]byte, error) {
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

func (b *bucket) append(dst []byte) ([]byte, error) {
	for _, v := range []int64{b.start, b.end, b.late, b.labelled} {
		dst = binenc.AppendVarint(dst, v)
	}
	dst, err := stage.AppendSet(dst, b.raw)
	if err != nil {
		return dst, err
	}
	return stage.AppendSet(dst, b.cal)
}

func (b *bucket) restore(r *binenc.Reader, d *acc.Decoder) error {
	b.start, b.end, b.late, b.labelled = r.Varint(), r.Varint(), r.Varint(), r.Varint()
	var err error
	if b.raw, err = stage.RestoreSet(r, d); err != nil {
		return err
	}
	b.cal, err = stage.RestoreSet(r, d)
	return err
}
