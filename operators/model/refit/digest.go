package refit

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// digestRows returns the SHA-256 of the rows that a run is fitted on: `uvarint` n, then each row as sampled rows are
// encoded in a checkpoint (docs/format.md, Sections), by prediction time, then id. Two fits with equal
// digests had the same ids, times, weights, labels and scores, bit for bit.
func digestRows(rows []acc.SampleRow) string {
	h := sha256.New()
	buf := binenc.AppendUvarint(nil, uint64(len(rows)))
	for i := range rows {
		h.Write(buf)
		buf = stage.AppendRows(buf[:0], rows[i:i+1])[1:] // without the count, which is one byte
	}
	h.Write(buf)
	return stage.DigestPrefix + hex.EncodeToString(h.Sum(nil))
}
