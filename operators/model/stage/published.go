package stage

import (
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// Published is the latest record of one kind, with its published bytes. A checkpoint holds the bytes.
type Published[T any] struct {
	Record  *T // nil = none was published; read-only
	Encoded []byte
}

// Append appends the published bytes to a checkpoint.
func (p *Published[T]) Append(dst []byte) []byte { return binenc.AppendBytes(dst, p.Encoded) }

// Restore reads what Append wrote.
func (p *Published[T]) Restore(in *binenc.Reader) {
	*p = Published[T]{}
	b := in.Bytes(binenc.MaxBytes)
	if len(b) == 0 {
		return
	}
	rec, err := record.Decode[T](b)
	if err != nil {
		in.Failf("%v", err)
		return
	}
	*p = Published[T]{rec, slices.Clone(b)}
}
