package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline"
)

// restorer reads the files of a checkpoint into an operator.
type restorer struct {
	binenc.Reader
	a     *Operator
	fetch pipeline.Fetch // of segments
}

// growing reads a file that still gets rows, with those in memory.
func (r *restorer) growing() error {
	a := r.a
	f, err := r.file()
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
	if err := r.rows(o); err != nil {
		return err
	}
	o.size = o.rows.Bytes()
	a.bytes += o.size
	return nil
}

// file reads a file and fetches its segments.
func (r *restorer) file() (*archivefile.File, error) {
	f := &archivefile.File{Group: groupOf(r.a), Partition: r.a.cfg.Shard, Model: r.String(binenc.MaxName),
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
		if err := r.segment(&s); err != nil {
			return nil, err
		}
		f.Segments = append(f.Segments, s)
	}
	return f, r.Err()
}

// segment brings one into the work directory and checks its bytes.
func (r *restorer) segment(s *archivefile.Segment) (err error) {
	if s.Path, err = r.a.work.path(s.Name); err != nil {
		return err
	}
	if err := r.fetch(s.Name, s.Path); err != nil {
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

// columns reads the slice columns of a file. One of other columns than the configuration has takes no row more:
// it is complete at the next watermark, and what follows begins another.
func (r *restorer) columns(o *openFile) error {
	n := r.Count(1, maxColumns)
	names := make([]string, n)
	for c := range names {
		names[c] = r.String(binenc.MaxName)
	}
	if r.Err() != nil || slices.Equal(names, r.a.cfg.Slices) {
		return r.Err()
	}
	o.rows.Columns, o.rows.Slices, o.until = names, make([][]string, n), math.MinInt64
	delete(r.a.open, o.key)
	r.a.log.Warn("slice columns: slices.columns has changed since the checkpoint: an archive file ends",
		"model", o.file.Model, "version", o.file.Version, "sequence", o.file.Sequence, "file", names,
		"slices.columns", r.a.cfg.Slices)
	return nil
}

func (r *restorer) rows(o *openFile) error {
	n := r.Count(22, 1<<31)
	rows := &o.rows
	if err := r.columns(o); err != nil {
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
