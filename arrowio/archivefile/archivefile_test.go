package archivefile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/internal/archivetest"
)

// TestFile: the head reader and the Arrow library read back what is written.
func TestFile(t *testing.T) {
	for _, c := range []struct{ half, scores bool }{{true, true}, {true, false}, {false, true}} {
		b, _, f := archivetest.File(t, c.half, c.scores)
		path := filepath.Join(t.TempDir(), f.Name())
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if f.Name() != "g-00003-0000000009-000000000017.arrow" {
			t.Errorf("name %s", f.Name())
		}
		info, err := archivefile.ReadInfo(path)
		want := archivefile.Info{
			Model:     "m",
			Version:   "v",
			K:         4,
			Rows:      15,
			Partition: 3,
			Sequence:  9,
			First:     "logits/3/17",
			Last:      "labels/3/4",
			Oldest:    5,
			Newest:    50,
			Digest:    f.Digest(),
			Bytes:     int64(len(b)),
		}
		if err != nil || *info != want {
			t.Errorf("info %+v, %v, want %+v", info, err, want)
		}
		r, err := ipc.NewFileReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if r.NumRecords() != 3 {
			t.Errorf("%d record batches, want 3", r.NumRecords())
		}
		names := []string{"id", "ts", "label_ts", "logits", "label", "features", "weight", "region"}
		if !c.scores {
			names = slices.Delete(names, 3, 4)
		}
		rec, err := r.Record(1)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range names {
			if rec.ColumnName(i) != n {
				t.Errorf("column %d is %s, want %s", i, rec.ColumnName(i), n)
			}
		}
		if got := rec.Column(len(names) - 1).(*array.String); !got.IsNull(0) || got.Value(1) != "eu" {
			t.Errorf("regions %v", got)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzReadInfo: the head of a file is read or refused, whatever the file holds.
func FuzzReadInfo(f *testing.F) {
	b, _, _ := archivetest.File(f, true, true)
	f.Add(b)
	f.Add(b[:300])
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := archivefile.ReadInfo(path); (info == nil) == (err == nil) {
			t.Errorf("info %v and error %v", info, err)
		}
	})
}

// TestDamagedSegment: a segment that has not the bytes of its name does not become a file, whenever it changes.
func TestDamagedSegment(t *testing.T) {
	good, err := archivefile.EncodeSegment(&archivefile.Rows{Model: "m", Version: "v", K: 2, D: 1,
		IDs: make([]arrowio.ID, 1), TS: []int64{1}, LabelTS: []int64{2}, Label: []int32{1}, Scores: []float32{1, 2},
		Features: make([]byte, 4), Weight: []float32{1}}, "0")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(good)
	f := &archivefile.File{Model: "m", K: 2, Rows: 1,
		Segments: []archivefile.Segment{{Name: hex.EncodeToString(sum[:]), Path: "segment"}}}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1
		out := &archivetest.Memory{}
		err := archivefile.Write(out, f, func(archivefile.Segment) ([]byte, error) { return b, nil })
		if err == nil || !strings.Contains(err.Error(), "the file segment is damaged") || len(out.Bytes) > 0 {
			t.Fatalf("byte %d: got %v, and %d bytes", i, err, len(out.Bytes))
		}
		reads := 0
		err = archivefile.Write(&archivetest.Memory{}, f, func(archivefile.Segment) ([]byte, error) {
			if reads++; reads == 1 {
				return good, nil
			}
			return b, nil
		})
		if !errors.Is(err, archivefile.ErrDamaged) {
			t.Fatalf("byte %d, changed since the first read: got %v", i, err)
		}
	}
}
