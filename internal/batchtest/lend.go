package batchtest

import (
	"bytes"

	"github.com/plumbline/plumbline/pipeline"
)

// Lend has a task take a record as sources hand it out: its memory is written over as soon as it was taken.
func Lend(r pipeline.Record, take func(pipeline.Record) error) error {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	lent := [][]byte{r.Key, r.Value}
	hs := r.Headers
	r.Headers = nil
	for _, h := range hs {
		h.Value = bytes.Clone(h.Value)
		r.Headers, lent = append(r.Headers, h), append(lent, h.Value)
	}
	err := take(r)
	for _, b := range lent {
		for i := range b {
			b[i] = 0xdb
		}
	}
	return err
}
