package table

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
)

// Options say what holds what; the zero value goes by names, see Open. Names are those of columns, or of arrays.
type Options struct {
	Array   string // the scores, of .npz files
	Labels  string // the labels; of any format a .npy file of them
	Logits  string // the scores: a column of lists or of one score, what several names begin with, or these
	Probs   string // names with commas between; the same of probabilities
	Time    string
	Classes []string // the names of the classes, by the order of the scores

	NoWeights bool // every row counts 1, whatever the file says
	// Note is told what was taken by other names than those of docs/schema.md. May be nil.
	Note func(what string)
}

// tell notes what a plan guessed.
func (o Options) tell(p *columnPlan) {
	if o.Note != nil && len(p.notes) > 0 {
		o.Note(strings.Join(p.notes, "; "))
	}
}

// Table is a whole file of predictions: N rows of K scores.
type Table struct {
	N, K int
	// One of the two is the row-major N×K slab: Scores64 where the file holds float64 (or text), else Scores32.
	Scores32 []float32
	Scores64 []float64
	Probs    bool
	// Source names the scores and, where it was guessed, why they are taken for probabilities or logits.
	Source string
	// Columns are those of the scores: one for each class, one of all, or the Single one.
	Columns []string
	Single  bool // the file has one score a row, of class 1

	Label   []int32 // -1 = not known; nil where the file has no labels
	NoLabel error   // what has their name and is none, where there are none; may be nil
	IDs     []string
	TS      []arrowio.Time
	NoTime  error // why there are no times, where there are none
	Weight  []float32
	Served  []float32 // NaN where null

	D        int
	Features []float32 // N×D; NaN rows where null

	Slices         map[string][]string // the other text columns; "" where null
	Left           string              // names of the columns that were not read, for a message
	Model, Version string
}

// Open reads predictions from an Arrow IPC (Feather) file or stream, Parquet, .npz, .npy, JSON or CSV file, the last
// two also compressed by gzip; the content decides which.
//
// Columns go by the options, then by the names of docs/schema.md, then by those that other tools use (names.go).
// Logits, probs and features are a column of lists or columns logits_0, logits_1, …; scores may have the names of the
// classes instead of numbers. Labels are whole numbers of any type, booleans, names of classes, or K columns one of
// which is 1.
//
// In an .npz file the scores are the array o.Array, or what follows a colon after the path (FILE.npz:array), else
// logits, probs, test_logits, test_probs or the only two-dimensional float array, else an array of another tool's name;
// the labels are o.Labels, else the array named as the scores with labels for logits or probs, else label, labels,
// test_labels, y or another tool's name, else the only integer array of N entries.
//
// Scores whose name does not say it are probabilities if their rows lie in [0,1] and sum to 1 within 1e-3.
func Open(path string, o Options) (t *Table, err error) {
	defer func() {
		// The Arrow library panics on some broken files.
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("read %s: %v", path, r)
		}
	}()
	file, array := splitArray(path)
	if array != "" {
		if o.Array != "" && o.Array != array {
			return nil, fmt.Errorf("read %s: the path names array %q, the option %q", path, array, o.Array)
		}
		o.Array = array
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err // names the file
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		if e := (*fs.PathError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	note := o.Note
	o.Note = func(what string) {
		if note != nil {
			note(file + ": " + what)
		}
	}
	if t, err = readTable(f, head[:n], o); err == nil && isFile(o.Labels) {
		err = t.labelFile(o)
	}
	if err == nil {
		if o.NoWeights {
			t.Weight = nil
		}
		err = t.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return t, nil
}

// splitArray splits FILE.npz:array, which is only read so where FILE ends in .npz.
func splitArray(path string) (file, array string) {
	if i := strings.LastIndex(path, ".npz:"); i >= 0 {
		return path[:i+4], path[i+5:]
	}
	return path, ""
}

// check validates what all formats share.
func (t *Table) check() error {
	if t.N == 0 {
		return fmt.Errorf("no rows")
	}
	if t.K < 2 {
		return fmt.Errorf("%s: %d scores a row, at least 2", t.Source, t.K)
	}
	for i, y := range t.Label {
		if y < -1 || int(y) >= t.K {
			return fmt.Errorf("label %d at row %d, allowed are 0 to %d, and -1 or null where not known%s", y, i, t.K-1,
				t.fromOne())
		}
	}
	return nil
}

// fromOne says what to do where the labels are 1 to K.
func (t *Table) fromOne() string {
	for _, y := range t.Label {
		if y == 0 || y < -1 || int(y) > t.K {
			return ""
		}
	}
	const all = 6 // more classes are not written out
	names := make([]string, min(t.K, all))
	for k := range names {
		names[k] = strconv.Itoa(k + 1)
	}
	if t.K > all {
		names = []string{"1", "2", "…", strconv.Itoa(t.K)}
	}
	return "; if 1 is the first class: --classes " + strings.Join(names, ",")
}

// writers are the formats of Write, by extension.
var writers = map[string]func(*os.File, *Table) error{
	".arrow": writeArrow, ".ipc": writeArrow, ".arrows": writeArrowStream, ".parquet": writeParquet,
	".npz": writeArrays, ".csv": func(w *os.File, t *Table) error { return WriteCSV(w, t) },
}

// Extensions are the extensions of the formats that Write knows.
func Extensions() []string { return slices.Sorted(maps.Keys(writers)) }

// Write writes t by the extension: an Arrow IPC file (.arrow, .ipc) or stream (.arrows), Parquet (.parquet), NumPy
// arrays (.npz, by the names of docs/schema.md, uncompressed) or CSV (.csv). It replaces a file that is there.
// Open reads the same table back, with two exceptions: CSV numbers come back as float64, and integer ids as text.
func Write(path string, t *Table) (err error) {
	write := writers[filepath.Ext(path)]
	if write == nil {
		return fmt.Errorf("write %s: extension %q, allowed are %s", path, filepath.Ext(path),
			strings.Join(Extensions(), ", "))
	}
	f, err := os.Create(path)
	if err != nil {
		return err // names the file
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write %s: %w", path, cerr)
		}
	}()
	if err := write(f, t); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
