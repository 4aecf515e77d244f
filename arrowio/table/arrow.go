package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/internal/record"
)

// Files are named by the user who runs the command, so they are read by the Arrow library itself; messages
// from Kafka never are.

func readArrowFile(f *os.File, o Options) (*Table, error) {
	r, err := ipc.NewFileReader(f)
	if err != nil {
		return nil, broken(err)
	}
	defer r.Close()
	if want, ok := r.Schema().Metadata().GetValue(archivefile.MetaCRC); ok {
		if err := checkArchive(f, want); err != nil {
			return nil, err
		}
	}
	b, err := newBuilder(r.Schema().Fields(), o)
	if err != nil {
		return nil, err
	}
	for i := range r.NumRecords() {
		rec, err := r.Record(i) // valid until the next call
		if err != nil {
			return nil, broken(fmt.Errorf("record batch %d: %w", i, err))
		}
		if err := b.append(rec); err != nil {
			return nil, err
		}
	}
	return b.done(r.Schema(), o)
}

// done ends the reading of a file of that schema.
func (b *builder) done(s *arrow.Schema, o Options) (*Table, error) {
	t, err := b.table()
	if err != nil {
		return nil, err
	}
	md := s.Metadata()
	model, _ := md.GetValue(arrowio.MetaModel)
	version, _ := md.GetValue(arrowio.MetaVersion)
	t.Model, t.Version = cmp.Or(t.Model, model), cmp.Or(t.Version, version)
	o.tell(b.p)
	return t, nil
}

func readArrowStream(f *os.File, o Options) (*Table, error) {
	r, err := ipc.NewReader(f)
	if err != nil {
		return nil, broken(err)
	}
	defer r.Release()
	b, err := newBuilder(r.Schema().Fields(), o)
	if err != nil {
		return nil, err
	}
	if err := b.readAll(r); err != nil {
		if errors.Is(err, r.Err()) {
			err = broken(err)
		}
		return nil, err
	}
	if n, _ := f.Read(make([]byte, 1)); n > 0 {
		return nil, errors.New("more follows the end of the Arrow stream: allowed is one stream a file")
	}
	return b.done(r.Schema(), o)
}

// broken is an error of the Arrow library, which says in its own words where it could not go on.
func broken(err error) error { return fmt.Errorf("the file is cut off, or damaged: %w", err) }

// records are what readers of files have in common.
type records interface {
	Next() bool
	Record() arrow.Record
	Err() error
}

func (b *builder) readAll(r records) error {
	for r.Next() {
		if err := b.append(r.Record()); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func writeArrow(w *os.File, t *Table) error {
	rec, err := t.record()
	if err != nil {
		return err
	}
	defer rec.Release()
	fw, err := ipc.NewFileWriter(w, ipc.WithSchema(rec.Schema()))
	if err != nil {
		return err
	}
	if err := fw.Write(rec); err != nil {
		return err
	}
	return fw.Close()
}

// streamRows is the most rows of a record batch of a stream: readers hold one at a time.
const streamRows = 1 << 16

func writeArrowStream(w *os.File, t *Table) error {
	rec, err := t.record()
	if err != nil {
		return err
	}
	defer rec.Release()
	sw := ipc.NewWriter(w, ipc.WithSchema(rec.Schema()))
	for at := int64(0); at < rec.NumRows(); at += streamRows {
		part := rec.NewSlice(at, min(at+streamRows, rec.NumRows()))
		err := sw.Write(part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return sw.Close()
}

// record is the table as one record.
func (t *Table) record() (arrow.Record, error) {
	b := record.New(t.N)
	b.Meta(arrowio.MetaModel, t.Model)
	b.Meta(arrowio.MetaVersion, t.Version)
	if t.IDs != nil {
		b.Add("id", true, record.Texts(t.IDs))
	}
	if t.TS != nil {
		b.Add("ts", false, record.Fixed(arrow.FixedWidthTypes.Timestamp_ns, t.TS, nil))
	}
	name := "logits"
	if t.Probs {
		name = "probs"
	}
	switch {
	case t.N == 0 || t.K == 0 || len(t.Scores32)+len(t.Scores64) != t.N*t.K:
		return nil, fmt.Errorf("%d scores for %d rows of %d classes", len(t.Scores32)+len(t.Scores64), t.N, t.K)
	case t.Scores64 != nil:
		b.Add(name, false, record.List(record.Fixed(arrow.PrimitiveTypes.Float64, t.Scores64, nil), t.N, t.K, nil))
	default:
		b.Add(name, false, record.Slab(t.Scores32, t.K))
	}
	if t.Label != nil {
		b.Add("label", true,
			record.Fixed(arrow.PrimitiveTypes.Int32, t.Label, func(i int) bool { return t.Label[i] < 0 }))
	}
	if t.Features != nil {
		b.Add("features", true, record.Features(t.Features, t.D, false))
	}
	if t.Served != nil {
		b.Add("served", true, record.NaNNull(t.Served))
	}
	if t.Weight != nil {
		b.Add("weight", true, record.NaNNull(t.Weight))
	}
	for _, s := range sortedKeys(t.Slices) {
		b.Add(s, true, record.Texts(t.Slices[s]))
	}
	return b.Record(), nil
}
