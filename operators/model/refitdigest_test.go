package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/internal/batchtest"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/record"
)

// plainDigest is the digest as docs/format.md has it, by the standard library alone.
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

// TestDigestRows: the digest is that of the format, and changes with anything about any row.
func TestDigestRows(t *testing.T) {
	rows := sample(batchtest.Rows(5, batchtest.Options{N: 300, Weights: true}))
	for _, n := range []int{0, 1, 2, 299, 300} {
		if got, want := digestRows(rows[:n]), plainDigest(rows[:n]); got != want {
			t.Errorf("%d rows: %s, want %s", n, got, want)
		}
	}
	seen := map[string]string{digestRows(rows): "nothing"}
	for name, change := range map[string]func(r *acc.SampleRow){
		"id": func(r *acc.SampleRow) { r.ID[7]++ }, "ts": func(r *acc.SampleRow) { r.TS++ }, "label ts": func(r *acc.SampleRow) { r.LabelTS++ },
		"weight": func(r *acc.SampleRow) { r.W *= 1.5 }, "label": func(r *acc.SampleRow) { r.Y++ },
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

// TestRefitsHaveDigests: a decision about fits says by a digest which rows they were of, and when they began; the same rows on other
// shards have the same.
func TestRefitsHaveDigests(t *testing.T) {
	rows := batchtest.Rows(42, batchtest.Options{N: 3000, MaxLag: 5 * second, Sharpness: 2})
	s := defaultSetup()
	s.model.Rules = nil
	s.model.Refit.Method = "auto"
	var first []string
	for _, shards := range []int{1, 3} {
		w := newWorld(t, s, stream(t, rows, shards, 50), 1).run(anyOrder)
		var all []string
		for _, stream := range []pipeline.Stream{pipeline.StreamCalibrators, pipeline.StreamDecisions} {
			for _, d := range decodeAll[record.Calibrator](t, w.outputs, stream) {
				e := d.Evidence
				if d.Reason == reasonRollback || len(e.Candidates) == 0 {
					continue
				}
				if hash, ok := strings.CutPrefix(e.FitDigest, digestPrefix); !ok || len(hash) != 64 || e.FitBegan > d.DecidedAt || e.FitBegan < e.FitTo {
					t.Errorf("decision of %s: fit of %q begun %s, on rows up to %s", d.DecidedAt, e.FitDigest, e.FitBegan, e.FitTo)
				}
				all = append(all, d.DecidedAt+" "+e.FitDigest)
			}
		}
		if len(all) < 3 {
			t.Fatalf("%d decisions with fits", len(all))
		}
		if shards == 1 {
			first = all
		} else if !slices.Equal(all, first) {
			t.Errorf("digests on %d shards:\n%s\non one:\n%s", shards, strings.Join(all, "\n"), strings.Join(first, "\n"))
		}
	}
}
