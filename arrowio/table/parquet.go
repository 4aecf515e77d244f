package table

import (
	"cmp"
	"os"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/parquet"
)

func readParquet(f *os.File) (*Table, error) {
	pf, err := parquet.Open(f)
	if err != nil {
		return nil, err
	}
	defer pf.Close()
	r, err := pf.Records(4096, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	defer r.Release()
	t, err := readRecords(r, pf.Rows())
	if err == nil {
		t.Model, t.Version = cmp.Or(t.Model, pf.Meta(arrowio.MetaModel)), cmp.Or(t.Version, pf.Meta(arrowio.MetaVersion))
	}
	return t, err
}

func writeParquet(w *os.File, t *Table) error {
	rec, err := t.record()
	if err != nil {
		return err
	}
	defer rec.Release()
	return parquet.Write(w, rec, [][2]string{{arrowio.MetaModel, t.Model}, {arrowio.MetaVersion, t.Version}})
}
