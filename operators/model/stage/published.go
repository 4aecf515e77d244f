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

// alertTexts packs alerts.
var alertTexts dictionary

// LastAlert is the latest record of an alert. Its published bytes are packed: many keys have had one, and only
// checkpoints read them.
type LastAlert struct {
	Record *record.Alert // nil = none was published; read-only
	packed []byte
}

// NewLastAlert returns a record and its published bytes, which it does not keep.
func NewLastAlert(a *record.Alert, text []byte) LastAlert {
	return LastAlert{a, alertTexts.encode(text, nil)}
}

// Text returns the published bytes; nil if there is no record.
func (l *LastAlert) Text() []byte {
	if l.Record == nil {
		return nil
	}
	return alertTexts.decode(l.packed)
}

// Append appends the published bytes to a checkpoint.
func (l *LastAlert) Append(dst []byte) []byte { return binenc.AppendBytes(dst, l.Text()) }

// Restore reads what Append wrote.
func (l *LastAlert) Restore(in *binenc.Reader) {
	var p Published[record.Alert]
	if p.Restore(in); p.Record == nil {
		*l = LastAlert{}
		return
	}
	*l = NewLastAlert(p.Record, p.Encoded)
}
