package refit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
)

// plainDigest computes the digest of docs/format.md with the standard library only.
func plainDigest(rows []acc.SampleRow) string {
	var b []byte
	b = binary.AppendUvarint(b, uint64(len(rows)))
	for _, r := range rows {
		b = append(b, r.ID[:]...)
		b = binary.AppendVarint(b, r.TS)
		b = binary.AppendVarint(b, r.LabelTS)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(r.W))
		b = binary.AppendUvarint(b, uint64(r.Y))
		b = binary.AppendUvarint(b, uint64(len(r.Z)))
		for _, z := range r.Z {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(z))
		}
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestDigestRows: the digest follows the format and changes with every property of every row.
func TestDigestRows(t *testing.T) {
	rows := sample(batchtest.Rows(5, batchtest.Options{N: 300, Weights: true}))
	for _, n := range []int{0, 1, 2, 299, 300} {
		if got, want := digestRows(rows[:n]), plainDigest(rows[:n]); got != want {
			t.Errorf("%d rows: %s, want %s", n, got, want)
		}
	}
	seen := map[string]string{digestRows(rows): "nothing"}
	for name, change := range map[string]func(r *acc.SampleRow){
		"id": func(r *acc.SampleRow) { r.ID[7]++ }, "ts": func(r *acc.SampleRow) { r.TS++ },
		"label ts": func(r *acc.SampleRow) { r.LabelTS++ },
		"weight":   func(r *acc.SampleRow) { r.W *= 1.5 }, "label": func(r *acc.SampleRow) { r.Y++ },
		"score": func(r *acc.SampleRow) { r.Z = slices.Clone(r.Z); r.Z[3] = math.Nextafter32(r.Z[3], 9) },
	} {
		other := slices.Clone(rows)
		change(&other[150])
		if d := digestRows(other); seen[d] != "" {
			t.Errorf("another %s leaves the digest of another %s", name, seen[d])
		} else {
			seen[d] = name
		}
	}
}
