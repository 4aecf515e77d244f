package table_test

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
)

// TestParquetFiles reads files of pyarrow as the Arrow files of the same rows: testdata/parquet/files.py made both. A
// file NAME-CASE.parquet is compared with NAME.arrow.
func TestParquetFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/parquet/*.parquet")
	if err != nil || len(files) < 29 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".parquet")
		want, err := table.Open(name+".arrow", table.Options{})
		if err != nil {
			base, _, _ := strings.Cut(name, "-")
			if want, err = table.Open(base+".arrow", table.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := table.Open(file, table.Options{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, x := range []*table.Table{got, want} {
			x.Source = ""
			for _, v := range [][]float32{x.Features, x.Served, x.Weight} {
				for i := range v { // NaN is not itself
					if v[i] != v[i] {
						v[i] = -math.MaxFloat32
					}
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", file, got, want)
		}
	}
}
