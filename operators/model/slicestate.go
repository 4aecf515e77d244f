package model

import (
	"fmt"
	"maps"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/slice"
)

// sliceSection is the checkpoint section that says which slice values have statistics of their own: the counts of the
// versions' slice columns, and the cells of values without.
func (f *fleet) sliceSection() *versionSection {
	return &versionSection{
		of:       f,
		what:     "slices",
		has:      func(v *version) bool { return len(v.heavy)+len(v.pendingSlices) > 0 },
		append:   appendHeavy,
		restore:  func(r *binenc.Reader, v *version) error { return v.restoreHeavy(r, &f.cfg) },
		restored: func(v *version) { v.matchHeavy(&f.cfg) },
	}
}

// matchHeavy makes the kept values equal to the values that have statistics.
func (v *version) matchHeavy(cfg *Config) {
	if cfg.Slices.MaxKeys == 0 {
		return
	}
	for name := range v.keys {
		if column, value, ok := splitSlice(name); ok {
			h := v.heavyOf(column)
			if _, kept := h.Kept[value]; !kept {
				h.Kept[value] = h.Pooled[value]
				delete(h.Pooled, value)
			}
		}
	}
	for column, h := range v.heavy {
		maps.DeleteFunc(h.Kept, func(value string, _ int64) bool { return v.keys[column+"="+value] == nil })
	}
}

func appendHeavy(dst []byte, v *version) []byte {
	dst = binenc.AppendUvarint(dst, uint64(len(v.heavy)))
	for column, counts := range sorted(v.heavy) {
		dst = counts.Append(binenc.AppendString(dst, column))
	}
	dst = binenc.AppendUvarint(dst, uint64(len(v.pendingSlices)))
	for slice, cells := range sorted(v.pendingSlices) {
		dst = cells.appendPending(binenc.AppendString(dst, slice))
	}
	return dst
}

func (v *version) restoreHeavy(r *binenc.Reader, cfg *Config) error {
	for range r.Count(5, binenc.MaxItems) {
		column, h := r.String(binenc.MaxName), slice.NewCounts()
		h.Restore(r)
		if r.Err() == nil && cfg.Slices.has(column+"=") {
			v.heavy[column] = h
		}
	}
	for range r.Count(2, binenc.MaxItems) {
		slice, b := r.String(binenc.MaxName), newInbox(nil)
		if err := b.restorePending(r, v.Shape); err != nil {
			return fmt.Errorf("slice %q: %w", slice, err)
		}
		if cfg.Slices.has(slice) {
			v.pendingSlices[slice] = &b
		}
	}
	return r.Err()
}
