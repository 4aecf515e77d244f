package archive

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// Stage is the operator as a shard registers it.
func (a *Operator) Stage() pipeline.Stage {
	return pipeline.Stage{Name: "archive", Operator: a, Version: 1, Files: a, Fresh: a.fresh, Durable: a.Durable,
		End: a.Flush, Close: a.Close}
}

// Durable tells that the checkpoint of the latest state is saved: the complete files in it are published from here on.
// It may be called from another goroutine than the rest.
func (a *Operator) Durable() { a.queue.show() }

// State implements pipeline.Operator.
func (a *Operator) State() pipeline.State { return a }

// AppendState appends watermark, number of the next file, the open files, each with the rows of the record batch
// to come, then the complete ones, then how many rows came while there was no archive, were published and were lost.
func (a *Operator) AppendState(dst []byte) ([]byte, error) {
	dst = binenc.AppendVarint(dst, a.wm)
	dst = binenc.AppendUvarint(dst, a.seq)
	dst = binenc.AppendUvarint(dst, uint64(len(a.order)))
	for _, o := range a.order {
		dst = appendFile(dst, &o.file)
		dst = append(dst, binenc.Flags(o.key.probs, o.key.scores, o.key.half))
		dst = binenc.AppendUvarint(dst, uint64(o.key.d))
		dst = binenc.AppendVarint(dst, o.until)
		dst = appendRows(dst, &o.rows)
	}
	files, published := a.queue.save()
	dst = binenc.AppendUvarint(dst, uint64(len(files)))
	for _, f := range files {
		dst = appendFile(dst, f)
	}
	n := a.counts.All()
	for _, rows := range []int64{n[pipeline.CountArchiveOff], published, n[pipeline.CountArchiveLost]} {
		dst = binenc.AppendUvarint(dst, uint64(rows))
	}
	return dst, nil
}

func appendFile(dst []byte, f *archivefile.File) []byte {
	dst = binenc.AppendString(binenc.AppendString(dst, f.Model), f.Version)
	dst = binenc.AppendUvarint(dst, f.Sequence)
	dst = binenc.AppendUvarint(dst, uint64(f.K))
	dst = binenc.AppendUvarint(dst, uint64(f.Rows))
	for _, o := range []arrowio.Origin{f.First, f.Last} {
		dst = binenc.AppendString(dst, o.Topic)
		dst = binenc.AppendVarint(dst, int64(o.Partition))
		dst = binenc.AppendVarint(dst, o.Offset)
	}
	dst = binenc.AppendVarint(binenc.AppendVarint(dst, f.Oldest), f.Newest)
	dst = binenc.AppendUvarint(dst, uint64(len(f.Segments)))
	for _, s := range f.Segments {
		sum, err := hex.DecodeString(s.Name)
		if err != nil {
			panic("archive: segment " + s.Name)
		}
		dst = binenc.AppendUvarint(append(dst, sum...), uint64(s.Bytes))
	}
	return dst
}

func appendRows(dst []byte, r *archivefile.Rows) []byte {
	dst = binenc.AppendUvarint(dst, uint64(r.N()))
	dst = binenc.AppendUvarint(dst, uint64(len(r.Slices)))
	for _, name := range r.Columns {
		dst = binenc.AppendString(dst, name)
	}
	for i := range r.N() {
		dst = append(dst, r.IDs[i][:]...)
		dst = binenc.AppendVarint(binenc.AppendVarint(dst, r.TS[i]), r.LabelTS[i])
		dst = binenc.AppendUvarint(dst, uint64(r.Label[i]))
		dst = binenc.AppendFixed32(dst, math.Float32bits(r.Weight[i]))
		for _, c := range r.Slices {
			dst = binenc.AppendString(dst, c[i])
		}
	}
	for _, z := range r.Scores {
		dst = binenc.AppendFixed32(dst, math.Float32bits(z))
	}
	return append(dst, r.Features...)
}

// Files are the segments that the latest AppendState refers to.
func (a *Operator) Files() []pipeline.File {
	var out []pipeline.File
	add := func(f *archivefile.File) {
		for _, s := range f.Segments {
			out = append(out, pipeline.File(s))
		}
	}
	for _, o := range a.order {
		add(&o.file)
	}
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	for _, f := range a.queue.files[:a.queue.saved] {
		add(f.file)
	}
	return out
}

// fresh begins an archive that was turned on after the checkpoint. What an archive of before had not
// published when it was turned off is lost, as the restored counts say.
func (a *Operator) fresh() {
	n := a.counts.All()
	lost := n[pipeline.CountArchiveLost]
	a.setCounts(notArchived(n), n[CountArchived]-lost, lost)
	a.queue.restored(n[CountArchived] - lost)
}

// setCounts sets the counts of rows: those that came while there was no archive, published ones, lost ones, and those
// that wait.
func (a *Operator) setCounts(off, published, lost int64) {
	memory, disk := a.waiting()
	for name, rows := range map[string]int64{pipeline.CountArchiveOff: off, pipeline.CountArchivePublished: published,
		pipeline.CountArchiveLost:   lost,
		pipeline.CountArchiveMemory: memory, pipeline.CountArchiveDisk: disk} {
		a.counts.Set(name, rows)
	}
}

// notArchived are the labelled rows that no archive has been given.
func notArchived(n map[string]int64) int64 {
	rows := n[pipeline.CountInline] + n[pipeline.CountJoined]
	for name, m := range n {
		if head, _, _ := strings.Cut(name, ":"); head == CountArchived || head == CountArchiveSkipped ||
			head == CountArchiveDropped {
			rows -= m
		}
	}
	return rows
}

// RestoreState implements pipeline.State, for a state without files.
func (a *Operator) RestoreState(src []byte) error {
	return a.RestoreFiles(src, func(name, _ string) error { return fmt.Errorf("no file %s", name) })
}

// RestoreFiles implements pipeline.FileState.
func (a *Operator) RestoreFiles(src []byte, fetch pipeline.Fetch) error {
	r := restorer{Reader: binenc.NewReader(src), a: a, fetch: fetch}
	a.wm, a.seq = r.Varint(), r.Uvarint()
	for range r.Count(8, maxOpen) {
		if err := r.growing(); err != nil {
			return err
		}
	}
	for range r.Count(8, 1<<24) {
		f, err := r.file()
		if err != nil {
			return err
		}
		a.queue.add(f)
	}
	off, published, lost := r.Int("rows without an archive", 0, math.MaxInt64),
		r.Int("published rows", 0, math.MaxInt64), r.Int("lost rows", 0, math.MaxInt64)
	if err := r.Close(); err != nil {
		return err
	}
	a.setCounts(off, published, lost)
	a.queue.restored(published)
	return nil
}

// waiting are the rows that are not published: those of record batches to come, and the others.
func (a *Operator) waiting() (memory, disk int64) {
	for _, o := range a.order {
		memory += int64(o.rows.N())
		disk += o.file.Rows - int64(o.rows.N())
	}
	for _, f := range a.queue.files {
		disk += f.file.Rows
	}
	return memory, disk
}
