package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/trainer/data"
)

// trainSource collects labelled rows with features of one file, or of a directory of files: labels and times in memory,
// features where they lie. Close it when the training is over.
type trainSource struct {
	memory  int64  // features of at most so many bytes are read into memory
	bound   string // the setting that says so
	span    *timeSpan
	wanted  func(model, version string) bool // of files that say whose rows they have; nil: all
	d, k    int
	regions []data.Region
	places  []sourceFile // in the order of their rows
	labels  []int32
	times   []int64 // empty where a part had none
	nanos   bool    // times are nanoseconds since 1970
	untimed bool
	keys    []uint64 // of the rows of an archive: rows of one key and time are one row
	null    []int32  // rows without features
	outside []int32  // rows that are not of the span
	early   int      // rows without features before the first that has some, for which there is no room yet
	open    []io.Closer
	used    *trainRows
}

// sourceFile is a file that rows came from: its first row is that of the source; features and label are what messages call its columns.
type sourceFile struct {
	path, features, label string
	first                 int
}

// place says where a row of the source came from, for messages.
func (s *trainSource) place(row int) (file sourceFile, inFile int) {
	for _, f := range s.places {
		if f.first <= row {
			file, inFile = f, row-f.first
		}
	}
	return file, inFile
}

// timeSpan is event times from and without to, ns.
type timeSpan struct{ from, to int64 }

func newTrainSource(memory int64, used *trainRows) *trainSource {
	return &trainSource{memory: memory, bound: "--memory", nanos: true, used: used}
}

// close closes the files.
func (s *trainSource) close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

var (
	// errOtherRows means that files of one directory do not belong together.
	errOtherRows = errors.New("rows of another shape than those before")
)

// otherVersionError means that a file has rows of another model version than is wanted.
type otherVersionError struct{ file, model, version string }

func (e otherVersionError) Error() string {
	return fmt.Sprintf("%s: features of %s", e.file, versionText(e.model, e.version))
}

// outOfReach says that an error is the system's, not the file's: another attempt may read what this one could not.
func outOfReach(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// rowShape checks that all parts have rows of one shape.
func (s *trainSource) rowShape(file string, d, k int) error {
	if d > 0 {
		if s.d != 0 && s.d != d {
			return fmt.Errorf("%s: %w: %d features a row, %d before", file, errOtherRows, d, s.d)
		}
		s.d = d
	}
	if k > 0 {
		if s.k != 0 && s.k != k {
			return fmt.Errorf("%s: %w: %d classes, %d before", file, errOtherRows, k, s.k)
		}
		s.k = k
	}
	return nil
}

// file adds the rows of an Arrow, Parquet or CSV file.
func (s *trainSource) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err // names the file
	}
	s.open = append(s.open, f)
	values := &spool{memory: s.memory, bound: s.bound}
	s.open = append(s.open, values)
	first := len(s.labels)
	s.places = append(s.places, sourceFile{path, "column features", "column label", first})
	info, err := table.ScanFeatures(path, func(p *table.FeaturePart) error {
		return s.part(path, f, values, p)
	})
	switch {
	case err == nil && s.wanted != nil && !s.wanted(info.Model, info.Version):
		return otherVersionError{path, info.Model, info.Version}
	case errors.Is(err, table.ErrNoFeatures):
		return fmt.Errorf("%s: no features: a column features is needed, or in npz files an array that FILE.npz:array or --array names", path)
	case errors.Is(err, table.ErrNoLabels):
		return fmt.Errorf("%s: no labels: a column label is needed, or in npz files an array that --labels names", path)
	case err != nil:
		return err
	case len(s.labels) == first:
		return fmt.Errorf("read %s: no rows", path)
	}
	s.used.Files++
	return nil
}

// versionName is how messages name a model version; the flags of train take it so.
func versionName(model, version string) string {
	return fmt.Sprintf("--model %q --version %q", model, version)
}

func (s *trainSource) part(path string, f *os.File, values *spool, p *table.FeaturePart) error {
	if err := s.rowShape(path, p.D, p.K); err != nil {
		return err
	}
	first := len(s.labels)
	if first+p.N > math.MaxInt32 {
		return fmt.Errorf("more than %d rows", math.MaxInt32)
	}
	s.labels = append(s.labels, p.Label...)
	for _, i := range p.Null {
		s.null = append(s.null, int32(first)+i)
	}
	s.untimed = s.untimed || p.TS == nil
	s.times = append(s.times, p.TS...)
	s.spanned(first, p.TS)
	for _, id := range p.IDs {
		s.keys = append(s.keys, rowKey(id))
	}
	s.used.Weighted = s.used.Weighted || p.Weighted
	if s.d == 0 {
		s.early += p.N
		return nil
	}
	if err := s.fill(values, s.early); err != nil {
		return err
	}
	s.early = 0
	switch {
	case p.D == 0: // all are null; there is no room for them either
		return s.fill(values, p.N)
	case p.Offset >= 0:
		s.region(data.Region{File: f, Name: path, Offset: p.Offset, Rows: p.N, Width: p.Width})
		return nil
	}
	at := values.size
	if err := values.floats(p.Values); err != nil {
		return err
	}
	s.region(data.Region{File: values, Name: path + " (unpacked)", Offset: at, Rows: p.N, Width: 4})
	return nil
}

// spanned marks the rows whose times are not of the span; those without times are of any.
func (s *trainSource) spanned(first int, ts []int64) {
	if s.span == nil {
		return
	}
	for i, t := range ts {
		if t < s.span.from || t >= s.span.to {
			s.outside = append(s.outside, int32(first+i)) //nolint:gosec // rows that are in memory
		}
	}
}

// fill adds rows without features.
func (s *trainSource) fill(values *spool, n int) error {
	if n == 0 {
		return nil
	}
	at := values.size
	if err := values.floats(make([]float32, n*s.d)); err != nil {
		return err
	}
	s.region(data.Region{File: values, Offset: at, Rows: n, Width: 4})
	return nil
}

// region adds a region, to the one before where it goes on.
func (s *trainSource) region(r data.Region) {
	if n := len(s.regions); n > 0 {
		b := &s.regions[n-1]
		if b.File == r.File && b.Width == r.Width && b.Offset+int64(b.Rows)*int64(s.d*b.Width) == r.Offset {
			b.Rows += r.Rows
			return
		}
	}
	s.regions = append(s.regions, r)
}

// rowKey is the first 64 bits of an id, in its order; 0 where there is none. Rows without one are never repeats.
func rowKey(id arrowio.ID) uint64 {
	if id == (arrowio.ID{}) {
		return 0
	}
	return max(binary.BigEndian.Uint64(id[:]), 1)
}

// directory adds the files of an archive directory: all files of formats that are known below it, but those whose names
// begin with a dot or an underscore. Files of other model versions are passed over where one is named; files that are gone
// by the time they are opened, or damaged, are reported.
func (s *trainSource) directory(dir, model, version string) error {
	files, err := archiveListing(dir)
	if err != nil {
		return err
	}
	chosen, err := s.choose(dir, files, model, version)
	if err != nil {
		return err
	}
	for _, path := range chosen {
		if err := s.try(path, len(chosen) == 1, func() error { return s.file(path) }); err != nil {
			return err
		}
	}
	if len(s.labels) == 0 {
		if len(s.used.Unreadable) > 0 {
			return fmt.Errorf("%s: none of %d files can be read: %s", dir, len(chosen), s.used.Unreadable[0])
		}
		return fmt.Errorf("%s: no rows", dir)
	}
	return nil
}

// try adds the rows of a file: one of several that is gone or damaged is left out, and noted. What the system could not
// read (no more open files, no permission, a broken disk) is an error: rows that are there are not left out in silence.
func (s *trainSource) try(path string, only bool, add func() error) error {
	before := *s
	err := add()
	if err == nil {
		return nil
	}
	s.forget(&before)
	var other otherVersionError
	switch {
	case only, errors.As(err, &other), errors.Is(err, errOtherRows):
		return err
	case errors.Is(err, fs.ErrNotExist):
		s.used.Vanished++
	case outOfReach(err):
		return fmt.Errorf("%s: %w", path, err)
	default:
		s.used.Unreadable = append(s.used.Unreadable, err.Error())
	}
	return nil
}

// forget takes back what a damaged file has added.
func (s *trainSource) forget(before *trainSource) {
	open := s.open[len(before.open):]
	for _, c := range open {
		_ = c.Close() // it was for reading
	}
	*s = *before
}

func archiveListing(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil && path == dir:
			return err
		case err != nil:
			return nil
		case path != dir && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && name != "__HIVE_DEFAULT_PARTITION__"):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !d.IsDir() && slices.Contains([]string{".arrow", ".arrows", ".ipc", ".feather", ".parquet", ".csv"}, filepath.Ext(name)):
			out = append(out, path)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no files *.arrow, *.arrows, *.ipc, *.feather, *.parquet or *.csv in this directory", dir)
	}
	return out, err
}

// choose returns the files of one model version. Features of two versions mean two things, so there must be one.
func (s *trainSource) choose(dir string, files []string, model, version string) ([]string, error) {
	type key struct{ model, version string }
	by := map[key][]string{}
	var plain, why []string // files that are not of an archive's making, or damaged
	for _, path := range files {
		info, err := archivefile.ReadInfo(path)
		if errors.Is(err, fs.ErrNotExist) {
			s.used.Vanished++
			continue
		}
		if err != nil && outOfReach(err) {
			return nil, err
		}
		if err != nil {
			plain, why = append(plain, path), append(why, err.Error())
			continue
		}
		k := key{info.Model, info.Version}
		if model != "" && model != k.model || version != "" && version != k.version {
			s.used.OtherFiles++
			continue
		}
		by[k] = append(by[k], path)
	}
	if len(by) == 0 && s.used.OtherFiles == 0 && model == "" && version == "" {
		return plain, nil
	}
	s.used.Unreadable = append(s.used.Unreadable, why...)
	keys := []key{}
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(strings.Compare(a.model, b.model), strings.Compare(a.version, b.version))
	})
	switch len(keys) {
	case 0:
		return nil, fmt.Errorf("%s: no files of %s", dir, versionName(model, version))
	case 1:
		return by[keys[0]], nil
	}
	var names []string
	for _, k := range keys {
		names = append(names, fmt.Sprintf("%s (%d files)", versionName(k.model, k.version), len(by[k])))
	}
	return nil, fmt.Errorf("%s: files of several model versions, whose features mean different things; choose one: %s", dir, strings.Join(names, ", "))
}
