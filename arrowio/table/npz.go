package table

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// arrays are those of an .npz file, by file order.
type arrays []*npy

func (as arrays) get(name string) *npy {
	for _, a := range as {
		if a.name == name {
			return a
		}
	}
	return nil
}

// need is the named array, or an error that lists what there is.
func (as arrays) need(name string) (*npy, error) {
	if a := as.get(name); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("no array %q; there are: %s", name, as)
}

func (as arrays) String() string {
	s := make([]string, len(as))
	for i, a := range as {
		s[i] = a.String()
	}
	return strings.Join(s, ", ")
}

// only is the single array that passes ok, or nil.
func (as arrays) only(ok func(*npy) bool) *npy {
	var found *npy
	for _, a := range as {
		if !ok(a) {
			continue
		}
		if found != nil {
			return nil
		}
		found = a
	}
	return found
}

func readNPZ(f *os.File, o Options) (*Table, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil {
		return nil, err
	}
	var as arrays
	for _, e := range z.File {
		name, ok := strings.CutSuffix(e.Name, ".npy")
		if !ok {
			continue
		}
		a, err := readNPY(name, e, o.Array)
		if err != nil {
			// An array of objects or of structures is no obstacle unless it is asked for.
			if name == o.Array || name == o.Labels {
				return nil, err
			}
			continue
		}
		as = append(as, a)
	}
	return as.table(o)
}

// readNPY reads an array. Where scores names another one, matrices that can be nothing but the scores of other
// models keep no elements: a file may hold dozens of them.
func readNPY(name string, e *zip.File, scores string) (*npy, error) {
	r, err := e.Open()
	if err != nil {
		return nil, fmt.Errorf("array %s: %w", name, err)
	}
	defer r.Close()
	a, err := readNPYHeader(name, r)
	if err != nil {
		return nil, err
	}
	if scores != "" && name != scores && name != "features" && len(a.shape) > 1 {
		return a, nil
	}
	// The lengths are the file's claim; deflate makes at most 1,032 bytes of one.
	const mostInflated = 1032
	want := uint64(a.count) * uint64(a.size)
	if e.UncompressedSize64 != want+uint64(a.start) || want/mostInflated > e.CompressedSize64 {
		return nil, fmt.Errorf("array %s: %d bytes for %d elements of %d bytes", name, e.UncompressedSize64-uint64(a.start), a.count, a.size)
	}
	a.data = make([]byte, want)
	if _, err := io.ReadFull(r, a.data); err != nil {
		return nil, fmt.Errorf("array %s: %w", name, err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // the reader compares the checksum at the end
		return nil, fmt.Errorf("array %s: %w", name, err)
	}
	return a, a.finish()
}

func (as arrays) table(o Options) (*Table, error) {
	s, err := as.scores(o.Array)
	if err != nil {
		return nil, err
	}
	t := &Table{N: s.rows(), K: 2}
	if len(s.shape) == 2 {
		t.K = s.shape[1]
	}
	if s.size == 8 {
		t.Scores64 = s.float64s()
	} else {
		t.Scores32 = s.float32s()
	}
	t.Probs, t.Source = s.probabilities()
	if len(s.shape) == 1 {
		t.Scores32, t.Scores64 = expandBinary(t.Scores32, t.Probs), expandBinary(t.Scores64, t.Probs)
	}
	if err := as.labels(t, s, o.Labels); err != nil {
		return nil, err
	}
	return t, as.columns(t, s)
}

// expandBinary turns one score a row into two: (0, z) or (1-p, p).
func expandBinary[T float](v []T, probs bool) []T {
	if v == nil {
		return nil
	}
	out := make([]T, 0, 2*len(v))
	for _, x := range v {
		var rest T
		if probs {
			rest = 1 - x
		}
		out = append(out, rest, x)
	}
	return out
}

// scores picks the score array.
func (as arrays) scores(name string) (*npy, error) {
	if name != "" {
		a, err := as.need(name)
		if err != nil {
			return nil, err
		}
		if !a.isFloat() || len(a.shape) < 1 || len(a.shape) > 2 {
			return nil, fmt.Errorf("array %s holds no scores: want float16, float32 or float64 of shape [n,K], or [n] for K = 2", a)
		}
		return a, nil
	}
	is := func(a *npy) bool { return a.isFloat() && len(a.shape) == 2 }
	for _, name := range []string{"logits", "probs", "test_logits", "test_probs"} {
		if a := as.get(name); a != nil && is(a) {
			return a, nil
		}
	}
	if a := as.only(is); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("which array holds the scores? name it; there are: %s", as)
}

// probTolerance is how far a row of an array without a telling name may sum from 1: rows rounded to float16.
const probTolerance = 1e-3

// probabilities says whether the scores are probabilities, and how that was decided.
func (a *npy) probabilities() (bool, string) {
	at := "array " + a.name
	if strings.Contains(a.name, "probs") {
		return true, at + ", probabilities by its name"
	}
	if strings.Contains(a.name, "logit") {
		return false, at + ", logits by its name"
	}
	k := 1
	if len(a.shape) == 2 {
		k = a.shape[1]
	}
	for i := range a.rows() {
		sum := 0.0
		for j := range k {
			x := a.float(i*k + j)
			if !(x >= 0 && x <= 1) {
				return false, fmt.Sprintf("%s, logits because row %d holds %v", at, i, x)
			}
			sum += x
		}
		if k > 1 && math.Abs(sum-1) > probTolerance {
			return false, fmt.Sprintf("%s, logits because row %d sums to %v", at, i, sum)
		}
	}
	return true, at + ", probabilities because every row lies in [0,1] and sums to 1"
}

// labels picks the label array; a table without labels is fine unless one was asked for.
func (as arrays) labels(t *Table, s *npy, name string) error {
	fits := func(a *npy) bool { return a != nil && a.isInt() && len(a.shape) == 1 && a.rows() == t.N }
	var y *npy
	if name != "" {
		a, err := as.need(name)
		if err != nil {
			return err
		}
		if !fits(a) {
			return fmt.Errorf("array %s holds no labels: want integers of shape [%d]", a, t.N)
		}
		y = a
	} else {
		replace := strings.NewReplacer("logits", "labels", "probs", "labels").Replace(s.name)
		for _, name := range []string{replace, "label", "labels", "test_labels", "y"} {
			if a := as.get(name); y == nil && fits(a) {
				y = a
			}
		}
		if y == nil {
			y = as.only(fits)
		}
	}
	if y == nil {
		return nil
	}
	t.Source += "; labels " + y.name
	t.Label = make([]int32, t.N)
	for i := range t.Label {
		v := y.int(i)
		if v != int64(int32(v)) {
			return fmt.Errorf("array %s: label %d at row %d", y, v, i)
		}
		t.Label[i] = int32(v)
	}
	return nil
}

// columns takes further arrays of N rows that are named as the schema's columns; text arrays are slices.
func (as arrays) columns(t *Table, s *npy) error {
	for _, a := range as {
		if a == s || a.rows() != t.N || len(a.shape) > 2 || len(a.shape) == 2 && a.name != "features" {
			continue
		}
		switch {
		case a.name == "features" && a.isFloat() && len(a.shape) == 2:
			t.D, t.Features = a.shape[1], a.float32s()
		case a.name == "weight" && a.isFloat():
			t.Weight = a.float32s()
		case a.name == "served" && a.isFloat():
			t.Served = a.float32s()
		case a.name == "ts":
			if err := a.times(t); err != nil {
				return err
			}
		case a.name == "id" && (a.isInt() || a.isText()):
			t.IDs = a.texts()
		case a.isText():
			if t.Slices == nil {
				t.Slices = make(map[string][]string)
			}
			t.Slices[a.name] = a.texts()
		}
	}
	text := t.Slices
	t.Slices = nil
	t.setText(text)
	return nil
}

// times reads datetime64 of s, ms, us or ns.
func (a *npy) times(t *Table) error {
	unit := slices.Index([]string{"s", "ms", "us", "ns"}, a.unit)
	if a.kind != 'M' || unit < 0 {
		return fmt.Errorf("array %s holds no times: want datetime64 of s, ms, us or ns", a)
	}
	t.TS = make([]arrowio.Time, t.N)
	for i := range t.TS {
		v := a.int(i)
		if v > math.MaxInt64/wire.Nanoseconds[unit] || v < -(math.MaxInt64/wire.Nanoseconds[unit]) {
			return fmt.Errorf("array %s: row %d is NaT or outside the years 1677 to 2262", a, i)
		}
		t.TS[i] = v * wire.Nanoseconds[unit]
	}
	return nil
}

func (a *npy) texts() []string {
	out := make([]string, a.len())
	for i := range out {
		if a.isText() {
			out[i] = a.text(i)
		} else {
			out[i] = strconv.FormatInt(a.int(i), 10)
		}
	}
	return out
}
