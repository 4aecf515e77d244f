package parquet_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

// TestDamagedPages: where a writer has put CRCs into the headers of pages, no byte of a page changes unseen.
func TestDamagedPages(t *testing.T) {
	good, err := os.ReadFile("../table/testdata/odd/pyarrow-page-checksum.parquet")
	if err != nil {
		t.Fatal(err)
	}
	want, err := everything(good, 100)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	footer := len(good) - 8 - int(binary.LittleEndian.Uint32(good[len(good)-8:]))
	for i := 4; i < footer; i++ {
		b := append([]byte(nil), good...)
		b[i] ^= 0x10
		got, err := everything(b, 100)
		switch {
		case err != nil && strings.Contains(err.Error(), "is damaged: its CRC is"):
			seen++
		case err == nil && len(got) == len(want):
			for name, v := range want {
				if g, ok := got[name]; ok && strings.Join(g, ",") != strings.Join(v, ",") {
					t.Errorf("byte %d: column %s is read as %v", i, name, g)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d changed bytes are seen by a CRC, want those of the pages", seen)
	}
}
