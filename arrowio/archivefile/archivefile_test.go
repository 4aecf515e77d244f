package archivefile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

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
