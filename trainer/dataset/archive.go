package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/table"
)

// archivePoll is how often a wait looks whether the archive has what is asked for.
const archivePoll = 200 * time.Millisecond

// Archive are the rows of a model version in an archive.
type Archive struct {
	Dir, Model, Version string
	Until               int64         // label time that every partition should go on beyond
	Settle              time.Duration // how long to wait for that at most
}

// ArchiveUse says what was read of an archive.
type ArchiveUse struct {
	Files   int
	Settled bool     // every partition went on beyond the label time
	LeftOut []string // files that are not of an archive, and why
}

// AddArchive adds the rows of the span: those predicted in it that had their label by its end. So the span alone
// determines them, however long ago it was, as long as the archive has them. The archive shows only complete files:
// AddArchive waits until every partition has one that goes on beyond the span. Open files stay readable when the
// archive removes them; files that it removed before are counted.
func (s *Source) AddArchive(ctx context.Context, of Archive) (use ArchiveUse, err error) {
	files, err := of.wait(ctx, &use)
	if err != nil {
		return use, err
	}
	for _, f := range files {
		if f.info.Oldest > s.Span.To || f.info.Newest < s.Span.From && !s.Span.holds(f.path) {
			continue
		}
		before := s.Used.Files
		if err := s.try(f.path, false, func() error { return s.labelledBy(f) }); err != nil {
			return use, err
		}
		use.Files += s.Used.Files - before
	}
	return use, nil
}

// errHeld ends a scan whose question is answered.
var errHeld = errors.New("a row of the span")

// holds reports whether the file has a row that was predicted in the span. Its head tells times of labels only, and a
// label may be of an earlier time than its prediction: a date is the midnight before. A file that cannot be read may
// have one: whoever reads it says why it cannot.
func (s *Span) holds(path string) bool {
	_, err := table.ScanFeatures(path, func(p *table.FeaturePart) error {
		if len(s.outside(0, p.TS)) < p.N {
			return errHeld
		}
		return nil
	})
	return err != nil
}

// labelledBy adds the rows of an archive file; those whose label came after the span are outside.
func (s *Source) labelledBy(f archivedFile) error {
	first := len(s.labels)
	if err := s.file(f.path); err != nil || f.info.Newest <= s.Span.To {
		return err
	}
	times, err := labelTimes(f.path)
	if err != nil {
		return err
	}
	if len(times) != len(s.labels)-first || len(s.times) != len(s.labels) {
		return fmt.Errorf("%s: %d times of labels, and %d of predictions, of %d rows", f.path, len(times),
			len(s.times)-first, len(s.labels)-first)
	}
	for i, t := range times {
		if ts := s.times[first+i]; t > s.Span.To && ts >= s.Span.From && ts < s.Span.To { // others are outside already
			s.Outside = append(s.Outside, int32(first+i)) //nolint:gosec // rows that are in memory
		}
	}
	return nil
}

type archivedFile struct {
	path string
	info *archivefile.Info
}

// wait lists the files of the model version, when they go on to the label time or the wait is over.
func (of Archive) wait(ctx context.Context, use *ArchiveUse) (files []archivedFile, err error) {
	deadline := time.Now().Add(of.Settle)
	known := archiveHeads{}
	for {
		if files, use.LeftOut, err = known.list(of); err != nil {
			return nil, err
		}
		newest := map[int]int64{}
		for _, f := range files {
			newest[f.info.Partition] = max(newest[f.info.Partition], f.info.Newest)
		}
		use.Settled = len(newest) > 0
		for _, t := range newest {
			use.Settled = use.Settled && t >= of.Until
		}
		if use.Settled || time.Now().After(deadline) {
			return files, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(archivePoll):
		}
	}
}

// archiveHeads are the heads of files that have been read, by path: files do not change, they are replaced.
type archiveHeads map[string]archiveHead

type archiveHead struct {
	size    int64
	written time.Time
	info    *archivefile.Info
	err     error // of a file that is no archive file
}

// list returns the archive's files of a model version by partition and number, and what is wrong with those that are
// none.
func (h archiveHeads) list(of Archive) (out []archivedFile, foreign []string, err error) {
	err = filepath.WalkDir(of.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // nothing has been archived, or a file has just been removed
		case err != nil:
			return err
		case d.IsDir() || filepath.Ext(path) != ".arrow" || d.Name()[0] == '.':
			return nil
		}
		head, err := h.read(path, d)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case head.err != nil:
			foreign = append(foreign, head.err.Error())
		case head.info.Model == of.Model && head.info.Version == of.Version:
			out = append(out, archivedFile{path, head.info})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b archivedFile) int {
		return cmp.Or(cmp.Compare(a.info.Partition, b.info.Partition), cmp.Compare(a.info.Sequence, b.info.Sequence),
			cmp.Compare(a.path, b.path))
	})
	return out, foreign, err
}

// read reads a head, unless it has and the file is as it was. An error is the system's.
func (h archiveHeads) read(path string, d fs.DirEntry) (archiveHead, error) {
	st, err := d.Info()
	if err != nil {
		return archiveHead{}, err
	}
	if k, ok := h[path]; ok && k.size == st.Size() && k.written.Equal(st.ModTime()) {
		return k, nil
	}
	k := archiveHead{size: st.Size(), written: st.ModTime()}
	if k.info, k.err = archivefile.ReadInfo(path); k.err != nil && outOfReach(k.err) {
		return k, k.err
	}
	h[path] = k
	return k, nil
}

// labelTimes reads the column label_ts of an archive file, whose other columns have been read.
func labelTimes(path string) (out []int64, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some broken files
			err = fmt.Errorf("%s: %v", path, r)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fr, err := ipc.NewFileReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer fr.Close()
	for i := range fr.NumRecords() {
		rec, err := fr.Record(i)
		if err != nil {
			return nil, fmt.Errorf("%s: record %d: %w", path, i, err)
		}
		at := rec.Schema().FieldIndices("label_ts")
		if len(at) != 1 {
			return nil, fmt.Errorf("%s: no column label_ts", path)
		}
		c, ok := rec.Column(at[0]).(*array.Timestamp)
		if !ok {
			return nil, fmt.Errorf("%s: column label_ts is of %s, want a timestamp", path, rec.Column(at[0]).DataType())
		}
		for j := range c.Len() {
			out = append(out, int64(c.Value(j)))
		}
	}
	return out, nil
}
