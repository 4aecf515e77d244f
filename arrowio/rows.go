package arrowio

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Good reports whether row i takes part.
func (b *Batch) Good(i int) bool { return b.Reject == nil || b.Reject[i] == "" }

// WithReject returns a batch of the same rows with other reasons. It shares the columns of b, and is valid as long as b
// is.
func (b *Batch) WithReject(reject []string) *Batch {
	c := *b
	c.Reject, c.mem, c.refs = reject, nil, 0
	return &c
}

// Rejecting returns a copy of the reasons of b, one for each row, that the caller may add to.
func (b *Batch) Rejecting() []string {
	if b.Reject == nil {
		return make([]string, b.N)
	}
	return slices.Clone(b.Reject)
}

// ModelOf returns the model version of row i; named is false for labels that name none.
func (b *Batch) ModelOf(i int) (key ModelKey, named bool) {
	if len(b.Models) == 0 {
		return ModelKey{}, false
	}
	if b.Model == nil {
		return b.Models[0], b.Models[0] != ModelKey{}
	}
	if b.Model[i] < 0 {
		return ModelKey{}, false
	}
	return b.Models[b.Model[i]], true
}

// RowID is the id of row i, or for rows without one a hash of the place that the row came from.
func (b *Batch) RowID(i int) ID {
	if b.IDs != nil {
		return b.IDs[i]
	}
	var buf [16]byte
	binary.BigEndian.PutUint64(buf[:], uint64(b.Origin.Offset))
	binary.BigEndian.PutUint32(buf[8:], uint32(b.Origin.Partition))
	binary.BigEndian.PutUint32(buf[12:], uint32(i))
	return HashID(string(buf[:]))
}

// Compare orders keys by model, then version.
func (k ModelKey) Compare(other ModelKey) int {
	return cmp.Or(cmp.Compare(k.Model, other.Model), cmp.Compare(k.Version, other.Version))
}
