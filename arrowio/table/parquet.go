package table

import (
	"cmp"
	"os"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/parquet"
)

func readParquet(f *os.File, o Options) (*Table, error) {
	pf, err := parquet.Open(f)
	if err != nil {
		return nil, err
	}
	fields := pf.Fields()
	b, err := newBuilder(fields, o)
	if err != nil {
		return nil, err
	}
	b.rows = pf.Rows()
	wanted := map[string]bool{}
	n := 0
	for i, f := range fields {
		if b.at[i] = (place{-1, -1}); b.p.roles[i].part != ignored && !wanted[f.Name] {
			wanted[f.Name], b.at[i] = true, place{n, -1}
			n++
		}
	}
	r, err := pf.ReadRecords(parquetRows, func(name string, _ bool) bool { return wanted[name] })
	if err != nil {
		return nil, err
	}
	if err := b.readAll(r); err != nil {
		return nil, err
	}
	t, err := b.table()
	if err != nil {
		return nil, err
	}
	t.Model, t.Version = cmp.Or(t.Model, pf.Meta(arrowio.MetaModel)), cmp.Or(t.Version, pf.Meta(arrowio.MetaVersion))
	o.tell(b.p)
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
