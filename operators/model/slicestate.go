package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/operators/model/slice"

	"github.com/plumbline/plumbline/internal/binenc"
)

// sliceState is the checkpoint section that says which slice values have statistics of their own.
type sliceState struct{ t *Task }

// matchHeavy makes the kept values equal to the values that have statistics.
func (v *version) matchHeavy() {
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

// AppendState implements pipeline.State. It appends the versions that have slices, by model and name.
func (s sliceState) AppendState(dst []byte) ([]byte, error) {
	for _, model := range slices.Sorted(maps.Keys(s.t.models)) {
		dst = s.t.models[model].appendHeavy(dst)
	}
	return dst, nil
}

// appendHeavy appends the counts of a model's slice columns and the cells of values without statistics.
func (m *model) appendHeavy(dst []byte) []byte {
	for _, version := range slices.Sorted(maps.Keys(m.versions)) {
		v := m.versions[version]
		if len(v.heavy) == 0 && len(v.pendingSlices) == 0 {
			continue
		}
		dst = binenc.AppendString(binenc.AppendString(dst, m.name), version)
		dst = binenc.AppendUvarint(dst, uint64(len(v.heavy)))
		for _, column := range slices.Sorted(maps.Keys(v.heavy)) {
			dst = v.heavy[column].Append(binenc.AppendString(dst, column))
		}
		dst = binenc.AppendUvarint(dst, uint64(len(v.pendingSlices)))
		for _, slice := range slices.Sorted(maps.Keys(v.pendingSlices)) {
			dst = v.pendingSlices[slice].appendPending(binenc.AppendString(dst, slice))
		}
	}
	return dst
}

// RestoreState implements pipeline.State. The section with the models must have been restored before.
func (s sliceState) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	for r.Err() == nil && r.Len() > 0 {
		model, version := r.String(binenc.MaxName), r.String(binenc.MaxName)
		if r.Err() != nil {
			break
		}
		m := s.t.models[model]
		if m == nil || m.versions[version] == nil {
			return fmt.Errorf("slices of %s version %q, which the checkpoint has not", model, version)
		}
		if err := m.versions[version].restoreHeavy(&r, &s.t.cfg); err != nil {
			return fmt.Errorf("slices of %s version %q: %w", model, version, err)
		}
	}
	if s.t.cfg.Slices.MaxKeys > 0 {
		for _, m := range s.t.models {
			for _, v := range m.versions {
				v.matchHeavy()
			}
		}
	}
	return r.Close()
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
