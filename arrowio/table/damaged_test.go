package table

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/internal/archivetest"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// TestDamagedArchives: no changed bit of an archive file becomes other rows.
func TestDamagedArchives(t *testing.T) {
	good, _, f := archivetest.File(t, true, true)
	path := filepath.Join(t.TempDir(), f.Name())
	read := func(b []byte) (rows string, err error) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = ScanFeatures(path, func(p *FeaturePart) error {
			rows += fmt.Sprintln(p.Label, p.TS, p.IDs, p.Weighted, p.N, p.D)
			if p.Offset >= 0 {
				rows += string(b[p.Offset : p.Offset+int64(p.N*p.D*p.Width)])
			}
			return nil
		})
		return rows, err
	}
	want, err := read(good)
	if err != nil || len(want) == 0 {
		t.Fatal(err)
	}
	_, rest, _, _, err := wire.Next(good[len(wire.FileMagic):])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	first, seen := len(good)-len(rest), 0 // the first record batch
	for i := 0; i < len(good); i += 3 {
		b := append([]byte(nil), good...)
		b[i] ^= 4
		rows, err := read(b)
		if err != nil && strings.Contains(err.Error(), "its record batches are damaged: their CRC-32C") {
			seen++
			if _, err := Open(path, Options{}); err == nil && i >= first {
				t.Errorf("byte %d: read for scores it is no error", i)
			}
		}
		if err == nil && rows != want && i >= first {
			t.Errorf("byte %d: other rows are read", i)
		}
	}
	if seen < 300 {
		t.Errorf("%d changed bytes are seen, want those of the record batches", seen)
	}
}
