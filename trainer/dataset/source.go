package dataset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

// Source collects labelled rows with features of one file, or of a directory of files: labels and times in memory,
// features where they lie. Close it when the training is over.
type Source struct {
	memory  int64  // features of at most so many bytes are read into memory
	Bound   string // the setting that says so
	Span    *Span
	wanted  func(model, version string) bool // of files that say whose rows they have; nil: all
	d, K    int
	regions []data.Region
	places  []sourceFile // in the order of their rows
	labels  []int32
	null    []int32 // rows without features
	Outside []int32 // rows that are not of the span
	early   int     // rows without features before the first that has some, for which there is no room yet
	order
	open []io.Closer
	Used *Rows
}

// sourceFile is a file that rows came from: its first row is that of the source; features and label are what messages
// call its columns.
type sourceFile struct {
	path, features, label string
	first                 int
}

// place says where a row of the source came from, for messages.
func (s *Source) place(row int) (file sourceFile, inFile int) {
	for _, f := range s.places {
		if f.first <= row {
			file, inFile = f, row-f.first
		}
	}
	return file, inFile
}

// Span is event times from and without to, ns.
type Span struct{ From, To int64 }

// NewSource returns an empty source that keeps at most so many bytes; used counts what is taken and left out.
func NewSource(memory int64, used *Rows) *Source {
	return &Source{memory: memory, Bound: "--memory", order: order{nanos: true}, Used: used}
}

// Close closes the files.
func (s *Source) Close() error {
	var errs []error
	for _, c := range s.open {
		errs = append(errs, c.Close())
	}
	s.open = nil
	return errors.Join(errs...)
}

var (
	// ErrOtherRows means that files of one directory do not belong together.
	ErrOtherRows = errors.New("rows of another shape than those before")
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
func (s *Source) rowShape(file string, d, k int) error {
	if d > 0 {
		if s.d != 0 && s.d != d {
			return fmt.Errorf("%s: %w: %d features a row, %d before", file, ErrOtherRows, d, s.d)
		}
		s.d = d
	}
	if k > 0 {
		if s.K != 0 && s.K != k {
			return fmt.Errorf("%s: %w: %d classes, %d before", file, ErrOtherRows, k, s.K)
		}
		s.K = k
	}
	return nil
}

// file adds the rows of an Arrow, Parquet or CSV file.
func (s *Source) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err // names the file
	}
	s.open = append(s.open, f)
	values := &spool{memory: s.memory, bound: s.Bound}
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
		return fmt.Errorf("%s: no features: a column features is needed, "+
			"or in npz files an array that FILE.npz:array or --array names", path)
	case errors.Is(err, table.ErrNoLabels):
		return fmt.Errorf("%s: no labels: a column label is needed, or in npz files an array that --labels names", path)
	case err != nil:
		return err
	case len(s.labels) == first:
		return fmt.Errorf("read %s: no rows", path)
	}
	s.Used.Files++
	return nil
}

// versionName is how messages name a model version; the flags of train take it so.
func versionName(model, version string) string {
	return fmt.Sprintf("--model %q --version %q", model, version)
}

// part adds rows of a file.
func (s *Source) part(path string, f *os.File, values *spool, p *table.FeaturePart) error {
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
	s.Outside = append(s.Outside, s.Span.outside(first, p.TS)...)
	for _, id := range p.IDs {
		s.keys = append(s.keys, rowKey(id))
	}
	s.Used.Weighted = s.Used.Weighted || p.Weighted
	return s.features(path, f, values, p)
}

// features adds the features of a part: where they lie in their file, else unpacked.
func (s *Source) features(path string, f *os.File, values *spool, p *table.FeaturePart) error {
	if s.d == 0 {
		s.early += p.N
		return nil
	}
	if err := s.fill(values, s.early); err != nil {
		return err
	}
	s.early = 0
	if p.D == 0 { // all are null; there is no room for them either
		return s.fill(values, p.N)
	}
	r := data.Region{File: f, Name: path, Offset: p.Offset, Rows: p.N, Width: p.Width}
	if p.Offset < 0 {
		r = data.Region{File: values, Name: path + " (unpacked)", Offset: values.size, Rows: p.N, Width: 4}
		if err := values.floats(p.Values); err != nil {
			return err
		}
	}
	s.regions = appendRegion(s.regions, r, s.d)
	return nil
}

// outside are the rows whose times are not of the span, the first of which is row first. nil has all times.
func (s *Span) outside(first int, ts []int64) (rows []int32) {
	if s == nil {
		return nil
	}
	for i, t := range ts {
		if t < s.From || t >= s.To {
			rows = append(rows, int32(first+i)) //nolint:gosec // rows that are in memory
		}
	}
	return rows
}

// fill adds rows without features.
func (s *Source) fill(values *spool, n int) error {
	if n == 0 {
		return nil
	}
	at := values.size
	if err := values.floats(make([]float32, n*s.d)); err != nil {
		return err
	}
	s.regions = appendRegion(s.regions, data.Region{File: values, Offset: at, Rows: n, Width: 4}, s.d)
	return nil
}

// appendRegion adds a region of rows of d features, to the one before where it goes on.
func appendRegion(to []data.Region, r data.Region, d int) []data.Region {
	if n := len(to); n > 0 {
		b := &to[n-1]
		if b.File == r.File && b.Width == r.Width && b.Offset+int64(b.Rows)*int64(d*b.Width) == r.Offset {
			b.Rows += r.Rows
			return to
		}
	}
	return append(to, r)
}

// rowKey is the first 64 bits of an id, in its order; 0 where there is none. Rows without one are never repeats.
func rowKey(id arrowio.ID) uint64 {
	if id == (arrowio.ID{}) {
		return 0
	}
	return max(binary.BigEndian.Uint64(id[:]), 1)
}

// directory adds the files of an archive directory: all files of formats that are known below it, but those whose names
// begin with a dot or an underscore. Files of other model versions are passed over where one is named; files that are
// gone by the time they are opened, or damaged, are reported.
func (s *Source) directory(dir, model, version string) error {
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
		if len(s.Used.Unreadable) > 0 {
			return fmt.Errorf("%s: none of %d files can be read: %s", dir, len(chosen), s.Used.Unreadable[0])
		}
		return fmt.Errorf("%s: no rows", dir)
	}
	return nil
}

// try adds the rows of a file: one of several that is gone or damaged is left out, and noted. What the system could not
// read (no more open files, no permission, a broken disk) is an error: rows that are there are not left out in silence.
func (s *Source) try(path string, only bool, add func() error) error {
	before := *s
	err := add()
	if err == nil {
		return nil
	}
	// What a damaged file has added is taken back.
	for _, c := range s.open[len(before.open):] {
		_ = c.Close() // it was for reading
	}
	*s = before
	var other otherVersionError
	switch {
	case only, errors.As(err, &other), errors.Is(err, ErrOtherRows):
		return err
	case errors.Is(err, fs.ErrNotExist):
		s.Used.Vanished++
	case outOfReach(err):
		return fmt.Errorf("%s: %w", path, err)
	default:
		s.Used.Unreadable = append(s.Used.Unreadable, err.Error())
	}
	return nil
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
		case path != dir && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") &&
			name != "__HIVE_DEFAULT_PARTITION__"):
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !d.IsDir() && slices.Contains([]string{".arrow", ".arrows", ".ipc", ".feather", ".parquet", ".csv"},
			filepath.Ext(name)):
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
func (s *Source) choose(dir string, files []string, model, version string) ([]string, error) {
	by := map[modelVersion][]string{}
	var plain, why []string // files that are not of an archive's making, or damaged
	for _, path := range files {
		info, err := archivefile.ReadInfo(path)
		var of modelVersion
		if err == nil {
			of = modelVersion{info.Model, info.Version}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.Used.Vanished++
		case err != nil && outOfReach(err):
			return nil, err
		case err != nil:
			plain, why = append(plain, path), append(why, err.Error())
		case model != "" && model != of.model || version != "" && version != of.version:
			s.Used.OtherFiles++
		default:
			by[of] = append(by[of], path)
		}
	}
	if len(by) == 0 && s.Used.OtherFiles == 0 && model == "" && version == "" {
		return plain, nil
	}
	s.Used.Unreadable = append(s.Used.Unreadable, why...)
	if len(by) == 0 {
		return nil, fmt.Errorf("%s: no files of %s", dir, versionName(model, version))
	}
	return oneVersion(dir, by)
}

type modelVersion struct{ model, version string }

// oneVersion are the files of the only model version, or an error that names all of them.
func oneVersion(dir string, by map[modelVersion][]string) ([]string, error) {
	versions := slices.SortedFunc(maps.Keys(by), func(a, b modelVersion) int {
		return cmp.Or(strings.Compare(a.model, b.model), strings.Compare(a.version, b.version))
	})
	if len(versions) == 1 {
		return by[versions[0]], nil
	}
	var names []string
	for _, v := range versions {
		names = append(names, fmt.Sprintf("%s (%d files)", versionName(v.model, v.version), len(by[v])))
	}
	return nil, fmt.Errorf("%s: files of several model versions, whose features mean different things; choose one: %s",
		dir, strings.Join(names, ", "))
}
