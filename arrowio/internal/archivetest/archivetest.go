package archivetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
)

// Memory is an io.WriteSeeker.
type Memory struct {
	Bytes []byte
	at    int
}

func (m *Memory) Write(p []byte) (int, error) {
	m.Bytes = append(m.Bytes[:m.at], p...)
	m.at = len(m.Bytes)
	return len(p), nil
}

// Seek implements io.Seeker.
func (m *Memory) Seek(off int64, whence int) (int64, error) {
	m.at = map[int]int{0: 0, 1: m.at, 2: len(m.Bytes)}[whence] + int(off)
	return int64(m.at), nil
}

// File is an archive file of three batches, and its rows.
func File(t testing.TB, half, scores bool) ([]byte, []*archivefile.Rows, *archivefile.File) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	f := &archivefile.File{
		Group:     "g",
		Model:     "m",
		Version:   "v",
		Partition: 3,
		Sequence:  9,
		K:         4,
		First:     arrowio.Origin{Topic: "logits", Partition: 3, Offset: 17},
		Last:      arrowio.Origin{Topic: "labels", Partition: 3, Offset: 4},
		Oldest:    5,
		Newest:    50,
	}
	var parts []*archivefile.Rows
	segments := map[string][]byte{}
	for b := range 3 {
		rows := batch(t, r, b, scores, half)
		data, err := archivefile.EncodeSegment(rows, fmt.Sprint(b))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:])
		segments[name] = data
		f.Segments = append(f.Segments, archivefile.Segment{Name: name, Bytes: int64(len(data))})
		f.Rows += int64(rows.N())
		parts = append(parts, rows)
	}
	out := &Memory{}
	read := func(s archivefile.Segment) ([]byte, error) { return segments[s.Name], nil }
	if err := archivefile.Write(out, f, read); err != nil {
		t.Fatal(err)
	}
	return out.Bytes, parts, f
}

// batch makes the rows of batch b: 4 + b of them.
func batch(t testing.TB, r *rand.Rand, b int, scores, half bool) *archivefile.Rows {
	t.Helper()
	rows := &archivefile.Rows{
		Model:   "m",
		Version: "v",
		K:       4,
		D:       3,
		Half:    half,
		Columns: []string{"region"},
		Slices:  [][]string{nil},
	}
	for i := range 4 + b {
		if !rows.AppendFeatures([]float32{float32(i), -float32(b) / 4, float32(r.IntN(100)) / 8}) {
			t.Fatal("features are refused")
		}
		rows.IDs = append(rows.IDs, arrowio.HashIntID(uint64(10*b+i)))
		rows.TS = append(rows.TS, int64(1000+i))
		rows.LabelTS = append(rows.LabelTS, int64(2000+i))
		rows.Label = append(rows.Label, int32(i%4))
		rows.Weight = append(rows.Weight, 1)
		rows.Slices[0] = append(rows.Slices[0], []string{"", "eu", "us"}[i%3])
		if scores {
			rows.Scores = append(rows.Scores, 1, 2, float32(i), float32(b))
		}
	}
	return rows
}
