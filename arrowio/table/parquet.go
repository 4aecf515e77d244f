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
	form, err := scoreForm(pf.Columns())
	if err != nil {
		return nil, err
	}
	r, err := pf.ReadRecords(parquetRows, func(name string, text bool) bool {
		switch name {
		case form.Column, "label", "ts", "id", "served", "weight", "features":
			return true
		}
		return text
	})
	if err != nil {
		return nil, err
	}
	t, err := readRecords(r, pf.Rows())
	if err != nil {
		return nil, err
	}
	t.Model, t.Version = cmp.Or(t.Model, pf.Meta(arrowio.MetaModel)), cmp.Or(t.Version, pf.Meta(arrowio.MetaVersion))
	return t, nil
}

// parquetRows is how many rows of a Parquet file are in memory beside the table.
const parquetRows = 4096

func writeParquet(w *os.File, t *Table) error {
	rec, err := t.record()
	if err != nil {
		return err
	}
	defer rec.Release()
	return parquet.Write(w, rec)
}
