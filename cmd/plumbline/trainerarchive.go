package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/pipeline/output"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/service"
)

// archivePoll is how often the trainer looks whether the archive has what a request asks for.
const archivePoll = 200 * time.Millisecond

// archived are the rows of a request from the archive: those predicted in its range that had their label by its end. So
// the request alone says which they are, however long ago it was made, as long as the archive has them. A file is there
// when it is complete: the trainer waits until every partition has one that goes on beyond the range, for at most
// trainer.settle.
func (l trainerLoader) archived(ctx context.Context, r output.Finetune, used *trainerRows) (*data.Set, error) {
	from, to, err := dataRange(r)
	if err != nil {
		return nil, err
	}
	used.Archive = l.archive()
	files, err := l.settled(ctx, r, to+int64(l.cfg.EventTime.AllowedLateness), used)
	if err != nil {
		return nil, err
	}
	c := &archiveColumns{from: from, to: to}
	for _, f := range files {
		if f.info.Oldest >= to || f.info.Newest < from {
			continue // labels come after predictions
		}
		if err := c.read(f.path); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		used.ArchiveFiles++
	}
	used.Outside += c.outside
	if len(c.rows) == 0 {
		return nil, fmt.Errorf("%s: no row of %s version %s was predicted between %s and %s and labelled by then; %d others are there", l.archive(), r.Model, r.Version, r.Data.From, r.Data.To, c.outside)
	}
	return c.set(r.Classes, l.cfg.Trainer.MaxRows, l.cfg.Trainer.Validation), nil
}

func dataRange(r output.Finetune) (from, to int64, err error) {
	if from, err = parseTime(r.Data.From); err != nil {
		return 0, 0, fmt.Errorf("%w: data.from: %w", service.ErrHopeless, err)
	}
	if to, err = parseTime(r.Data.To); err != nil {
		return 0, 0, fmt.Errorf("%w: data.to: %w", service.ErrHopeless, err)
	}
	return from, to, nil
}

type archivedFile struct {
	path string
	info *arrowio.ArchiveInfo
}

// settled lists the files of a model version, when they go on to a label time or the wait is over.
func (l trainerLoader) settled(ctx context.Context, r output.Finetune, until int64, used *trainerRows) ([]archivedFile, error) {
	deadline := time.Now().Add(l.cfg.Trainer.Settle)
	for {
		files, err := l.list(r)
		if err != nil {
			return nil, err
		}
		newest := map[int]int64{}
		for _, f := range files {
			newest[f.info.Partition] = max(newest[f.info.Partition], f.info.Newest)
		}
		used.Settled = len(newest) > 0
		for _, t := range newest {
			used.Settled = used.Settled && t >= until
		}
		if used.Settled || time.Now().After(deadline) {
			return files, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(archivePoll):
		}
	}
}

// list returns the archive's files of a model version by partition and number. What is no archive file is passed over.
func (l trainerLoader) list(r output.Finetune) ([]archivedFile, error) {
	var out []archivedFile
	err := filepath.WalkDir(l.archive(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // nothing has been archived, or a file has just been removed
		case err != nil:
			return err
		case d.IsDir() || filepath.Ext(path) != ".arrow" || d.Name()[0] == '.':
			return nil
		}
		info, err := arrowio.ReadArchiveInfo(path)
		if err == nil && info.Model == r.Model && info.Version == r.Version {
			out = append(out, archivedFile{path, info})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b archivedFile) int {
		return cmp.Or(cmp.Compare(a.info.Partition, b.info.Partition), cmp.Compare(a.info.Sequence, b.info.Sequence), cmp.Compare(a.path, b.path))
	})
	return out, err
}

// archiveColumns gathers rows of archive files.
type archiveColumns struct {
	from, to int64
	d        int
	outside  int
	rows     []archiveRow
	x        []float32
}

// archiveRow is a row whose features are x[at*d:].
type archiveRow struct {
	ts    int64
	id    []byte
	label int32
	at    int
}

// read adds the rows of a file. The file was made by this program and is there whole; what is not as it must be is an
// error.
func (c *archiveColumns) read(path string) (err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some broken files
			err = fmt.Errorf("%v", r)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fr, err := ipc.NewFileReader(f)
	if err != nil {
		return err
	}
	defer fr.Close()
	for i := range fr.NumRecords() {
		rec, err := fr.Record(i)
		if err == nil {
			err = c.record(rec)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

func (c *archiveColumns) record(rec arrow.Record) error {
	column := func(name string) arrow.Array {
		if ix := rec.Schema().FieldIndices(name); len(ix) == 1 {
			return rec.Column(ix[0])
		}
		return nil
	}
	id, ok1 := column("id").(*array.FixedSizeBinary)
	ts, ok2 := column("ts").(*array.Timestamp)
	labelTS, ok3 := column("label_ts").(*array.Timestamp)
	label, ok4 := column("label").(*array.Int32)
	list, ok5 := column("features").(*array.FixedSizeList)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return fmt.Errorf("columns %v: want id, ts, label_ts, label and features as the archive has them", rec.Schema())
	}
	d := int(list.DataType().(*arrow.FixedSizeListType).Len())
	if c.d == 0 {
		c.d = d
	}
	if d != c.d {
		return fmt.Errorf("%w: %d features a row, rows before have %d", service.ErrHopeless, d, c.d)
	}
	for i := range label.Len() {
		if t := int64(ts.Value(i)); t < c.from || t >= c.to || int64(labelTS.Value(i)) > c.to {
			c.outside++
			continue
		}
		c.rows = append(c.rows, archiveRow{int64(ts.Value(i)), bytes.Clone(id.Value(i)), label.Value(i), len(c.rows)})
		start, _ := list.ValueOffsets(i)
		switch values := list.ListValues().(type) {
		case *array.Float32:
			c.x = append(c.x, values.Float32Values()[start:int(start)+d]...)
		case *array.Float16:
			for _, v := range values.Values()[start : int(start)+d] {
				c.x = append(c.x, v.Float32())
			}
		default:
			return fmt.Errorf("features of %s, want float16 or float32", values.DataType())
		}
	}
	return nil
}

// set puts the rows in the order of prediction time and id, each once, and keeps the newest of them that may be used.
func (c *archiveColumns) set(classes, most int, validation float64) *data.Set {
	slices.SortFunc(c.rows, func(a, b archiveRow) int {
		return cmp.Or(cmp.Compare(a.ts, b.ts), bytes.Compare(a.id, b.id))
	})
	rows := slices.CompactFunc(c.rows, func(a, b archiveRow) bool { return a.ts == b.ts && a.id != nil && bytes.Equal(a.id, b.id) })
	if n := int(float64(most) / (1 - validation)); most > 0 && len(rows) > n {
		rows = rows[len(rows)-n:]
	}
	s := &data.Set{D: c.d, K: classes, X: c.x, Index: make([]int32, len(rows)), Y: make([]int32, len(rows)), Time: make([]int64, len(rows))}
	for i, r := range rows {
		s.Index[i], s.Y[i], s.Time[i] = int32(r.at), r.label, r.ts //nolint:gosec // rows that are in memory
	}
	return s
}
