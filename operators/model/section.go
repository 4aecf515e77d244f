package model

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// sorted walks a map in the order of its keys, so that no result depends on the order of a map. The keys are those at
// the start of the walk.
func sorted[K cmp.Ordered, V any](of map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(of)) {
			if !yield(k, of[k]) {
				return
			}
		}
	}
}

// versions walks the versions of all models, by model and name.
func (f *fleet) versions() iter.Seq2[*model, *version] {
	return func(yield func(*model, *version) bool) {
		for _, m := range sorted(f.models) {
			for _, v := range sorted(m.versions) {
				if !yield(m, v) {
					return
				}
			}
		}
	}
}

// versionSection is a checkpoint section that has something of every model version, after the names of the model and
// the version. The section with the models must be restored before.
type versionSection struct {
	of       *fleet
	what     string              // for errors
	has      func(*version) bool // versions without are left out; nil: all have it
	append   func(dst []byte, v *version) []byte
	restore  func(r *binenc.Reader, v *version) error
	restored func(*version) // of all versions, when all are; nil: nothing
}

// AppendState implements pipeline.State.
func (s *versionSection) AppendState(dst []byte) ([]byte, error) {
	for _, m := range sorted(s.of.models) {
		dst = s.appendModel(dst, m)
	}
	return dst, nil
}

func (s *versionSection) appendModel(dst []byte, m *model) []byte {
	for name, v := range sorted(m.versions) {
		if s.has == nil || s.has(v) {
			dst = s.append(binenc.AppendString(binenc.AppendString(dst, m.name), name), v)
		}
	}
	return dst
}

// RestoreState implements pipeline.State.
func (s *versionSection) RestoreState(src []byte) error {
	r := binenc.NewReader(src)
	for r.Err() == nil && r.Len() > 0 {
		name, vn := r.String(binenc.MaxName), r.String(binenc.MaxName)
		if r.Err() != nil {
			break
		}
		m := s.of.models[name]
		if m == nil || m.versions[vn] == nil {
			return fmt.Errorf("%s of %s version %q, which the checkpoint has not", s.what, name, vn)
		}
		if err := s.restore(&r, m.versions[vn]); err != nil {
			return fmt.Errorf("%s of %s version %q: %w", s.what, name, vn, err)
		}
	}
	if s.restored != nil {
		for _, v := range s.of.versions() {
			s.restored(v)
		}
	}
	return r.Close()
}

// paneSection is a section with a label pane of each version, minPane if none, and how many panes have passed since.
func (f *fleet) paneSection(what string, of func(*version) (pane, passed *int64)) *versionSection {
	return &versionSection{
		of:   f,
		what: what,
		has: func(v *version) bool {
			pane, _ := of(v)
			return *pane != minPane
		},
		append: func(dst []byte, v *version) []byte {
			pane, passed := of(v)
			return binenc.AppendVarint(binenc.AppendVarint(dst, *pane), *passed)
		},
		restore: func(r *binenc.Reader, v *version) error {
			pane, passed := of(v)
			*pane, *passed = r.Varint(), max(0, r.Varint())
			return nil
		},
	}
}
