package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
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
	r := binenc.NewReader(src)
	a.wm, a.seq = r.Varint(), r.Uvarint()
	for range r.Count(8, maxOpen) {
		if err := a.restoreOpen(&r, fetch); err != nil {
			return err
		}
	}
	for range r.Count(8, 1<<24) {
		f, err := a.restoreFile(&r, fetch)
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

func (a *Operator) restoreOpen(r *binenc.Reader, fetch pipeline.Fetch) error {
	f, err := a.restoreFile(r, fetch)
	if err != nil {
		return err
	}
	flags := r.Byte()
	key := fileKey{
		model:  arrowio.ModelKey{Model: f.Model, Version: f.Version},
		k:      f.K,
		probs:  flags&1 != 0,
		scores: flags&2 != 0,
		half:   flags&4 != 0,
	}
	key.d = int(r.Int("features", 1, 1<<24))
	until := r.Varint()
	if r.Err() != nil {
		return r.Err()
	}
	ended := until == math.MinInt64 // of other columns: it takes no row more
	if !ended && a.open[key] != nil || len(a.order) > 0 && f.Sequence <= a.order[len(a.order)-1].file.Sequence {
		r.Failf("archive file %d of %s/%s after %d others", f.Sequence, f.Model, f.Version, len(a.order))
		return r.Err()
	}
	o := a.newOpen(key, f.Sequence)
	o.file, o.until = *f, until
	if ended {
		delete(a.open, key)
	}
	if err := a.restoreRows(r, o); err != nil {
		return err
	}
	o.size = o.rows.Bytes()
	a.bytes += o.size
	return nil
}

// restoreFile reads a file and fetches its segments.
func (a *Operator) restoreFile(r *binenc.Reader, fetch pipeline.Fetch) (*archivefile.File, error) {
	f := &archivefile.File{Group: groupOf(a), Partition: a.cfg.Shard, Model: r.String(binenc.MaxName),
		Version: r.String(binenc.MaxName), Sequence: r.Uvarint()}
	f.K, f.Rows = int(r.Int("classes", 0, 1<<24)), r.Int("rows", 0, math.MaxInt64)
	for _, o := range []*arrowio.Origin{&f.First, &f.Last} {
		*o = arrowio.Origin{Topic: r.String(binenc.MaxName), Partition: int32(r.Varint()), Offset: r.Varint()}
	}
	f.Oldest, f.Newest = r.Varint(), r.Varint()
	for range r.Count(sha256.Size+1, 1<<24) {
		s := archivefile.Segment{Name: hex.EncodeToString(r.Raw(sha256.Size)), Bytes: r.Int("bytes", 0, math.MaxInt64)}
		if r.Err() != nil {
			break
		}
		if err := a.fetch(&s, fetch); err != nil {
			return nil, err
		}
		f.Segments = append(f.Segments, s)
	}
	return f, r.Err()
}

// fetch brings a segment into the work directory and checks its bytes.
func (a *Operator) fetch(s *archivefile.Segment, fetch pipeline.Fetch) (err error) {
	if s.Path, err = a.work.path(s.Name); err != nil {
		return err
	}
	if err := fetch(s.Name, s.Path); err != nil {
		return err
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != s.Name || n != s.Bytes {
		return fmt.Errorf("archive: file %s has %d bytes with SHA-256 %s, want %d", s.Name, n, got, s.Bytes)
	}
	return nil
}

// maxColumns bounds the number of columns that a checkpoint may claim.
const maxColumns = 1 << 12

// restoreColumns reads the slice columns of a file. One of other columns than the configuration has takes no row more:
// it is complete at the next watermark, and what follows begins another.
func (a *Operator) restoreColumns(r *binenc.Reader, o *openFile) error {
	n := r.Count(1, maxColumns)
	names := make([]string, n)
	for c := range names {
		names[c] = r.String(binenc.MaxName)
	}
	if r.Err() != nil || slices.Equal(names, a.cfg.Slices) {
		return r.Err()
	}
	o.rows.Columns, o.rows.Slices, o.until = names, make([][]string, n), math.MinInt64
	delete(a.open, o.key)
	a.log.Warn("slice columns: slices.columns has changed since the checkpoint: an archive file ends", "model",
		o.file.Model,
		"version", o.file.Version, "sequence", o.file.Sequence, "file", names, "slices.columns", a.cfg.Slices)
	return nil
}

func (a *Operator) restoreRows(r *binenc.Reader, o *openFile) error {
	n := r.Count(22, 1<<31)
	rows := &o.rows
	if err := a.restoreColumns(r, o); err != nil {
		return err
	}
	for range n {
		var id arrowio.ID
		copy(id[:], r.Raw(len(id)))
		rows.IDs, rows.TS = append(rows.IDs, id), append(rows.TS, r.Varint())
		rows.LabelTS = append(rows.LabelTS, r.Varint())
		rows.Label = append(rows.Label, int32(r.Int("label", 0, math.MaxInt32)))
		rows.Weight = append(rows.Weight, math.Float32frombits(r.Fixed32()))
		for c := range rows.Slices {
			rows.Slices[c] = append(rows.Slices[c], r.String(binenc.MaxName))
		}
		if r.Err() != nil {
			return r.Err()
		}
	}
	if o.key.scores {
		for range n * o.key.k {
			rows.Scores = append(rows.Scores, math.Float32frombits(r.Fixed32()))
			if r.Err() != nil {
				return r.Err()
			}
		}
	}
	rows.Features = append(rows.Features, r.Raw(n*o.key.d*rows.FeatureBytes())...)
	return r.Err()
}
