package table

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/arrowio/wire"
)

// arrays are those of an .npz file, by file order.
type arrays []*npy.Array

func (as arrays) get(name string) *npy.Array {
	for _, a := range as {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// need is the named array, or an error that lists what there is.
func (as arrays) need(name string) (*npy.Array, error) {
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
func (as arrays) only(ok func(*npy.Array) bool) *npy.Array {
	var found *npy.Array
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
	z, err := npy.NewArchive(f, st.Size())
	if err != nil {
		return nil, err
	}
	var as arrays
	for _, name := range z.Names() {
		a, err := readArray(z, name, o.Array)
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

// readArray reads an array. Where scores names another one, matrices that can be nothing but the scores of other
// models keep no elements: a file may hold dozens of them.
func readArray(z *npy.Archive, name, scores string) (*npy.Array, error) {
	e, err := z.Find(name)
	if err != nil {
		return nil, err
	}
	if scores != "" && name != scores && name != "features" && len(e.Shape) > 1 {
		return &npy.Array{Header: e.Header}, nil
	}
	return e.Read()
}

func (as arrays) table(o Options) (*Table, error) {
	s, err := as.scores(o.Array)
	if err != nil {
		return nil, err
	}
	t := &Table{N: s.Rows(), K: 2}
	if len(s.Shape) == 2 {
		t.K = s.Shape[1]
	}
	if s.Size == 8 {
		t.Scores64 = s.Float64s()
	} else {
		t.Scores32 = s.Float32s()
	}
	t.Probs, t.Source = probabilities(s)
	if len(s.Shape) == 1 {
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
func (as arrays) scores(name string) (*npy.Array, error) {
	if name != "" {
		a, err := as.need(name)
		if err != nil {
			return nil, err
		}
		if !a.IsFloat() || len(a.Shape) < 1 || len(a.Shape) > 2 {
			return nil, fmt.Errorf(
				"array %s holds no scores: want float16, float32 or float64 of shape [n,K], or [n] for K = 2", a)
		}
		return a, nil
	}
	is := func(a *npy.Array) bool { return a.IsFloat() && len(a.Shape) == 2 }
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
func probabilities(a *npy.Array) (bool, string) {
	at := "array " + a.Name
	if strings.Contains(a.Name, "probs") {
		return true, at + ", probabilities by its name"
	}
	if strings.Contains(a.Name, "logit") {
		return false, at + ", logits by its name"
	}
	k := 1
	if len(a.Shape) == 2 {
		k = a.Shape[1]
	}
	for i := range a.Rows() {
		sum := 0.0
		for j := range k {
			x := a.Float(i*k + j)
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
func (as arrays) labels(t *Table, s *npy.Array, name string) error {
	fits := func(a *npy.Array) bool { return a != nil && a.IsInt() && len(a.Shape) == 1 && a.Rows() == t.N }
	var y *npy.Array
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
		replace := strings.NewReplacer("logits", "labels", "probs", "labels").Replace(s.Name)
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
	t.Source += "; labels " + y.Name
	t.Label = make([]int32, t.N)
	for i := range t.Label {
		v := y.Int(i)
		if v != int64(int32(v)) {
			return fmt.Errorf("array %s: label %d at row %d", y, v, i)
		}
		t.Label[i] = int32(v)
	}
	return nil
}

// columns takes further arrays of N rows that are named as the schema's columns; text arrays are slices.
func (as arrays) columns(t *Table, s *npy.Array) error {
	for _, a := range as {
		if a == s || a.Rows() != t.N || len(a.Shape) > 2 || len(a.Shape) == 2 && a.Name != "features" {
			continue
		}
		switch {
		case a.Name == "features" && a.IsFloat() && len(a.Shape) == 2:
			t.D, t.Features = a.Shape[1], a.Float32s()
		case a.Name == "weight" && a.IsFloat():
			t.Weight = a.Float32s()
		case a.Name == "served" && a.IsFloat():
			t.Served = a.Float32s()
		case a.Name == "ts":
			if err := times(a, t); err != nil {
				return err
			}
		case a.Name == "id" && (a.IsInt() || a.IsText()):
			t.IDs = texts(a)
		case a.IsText():
			if t.Slices == nil {
				t.Slices = make(map[string][]string)
			}
			t.Slices[a.Name] = texts(a)
		}
	}
	text := t.Slices
	t.Slices = nil
	t.setText(text)
	return nil
}

// times reads datetime64 of s, ms, us or ns.
func times(a *npy.Array, t *Table) error {
	unit := slices.Index([]string{"s", "ms", "us", "ns"}, a.Unit)
	if a.Kind != 'M' || unit < 0 {
		return fmt.Errorf("array %s holds no times: want datetime64 of s, ms, us or ns", a)
	}
	t.TS = make([]arrowio.Time, t.N)
	for i := range t.TS {
		v := a.Int(i)
		if v > math.MaxInt64/wire.Nanoseconds[unit] || v < -(math.MaxInt64/wire.Nanoseconds[unit]) {
			return fmt.Errorf("array %s: row %d is NaT or outside the years 1677 to 2262", a, i)
		}
		t.TS[i] = v * wire.Nanoseconds[unit]
	}
	return nil
}

func texts(a *npy.Array) []string {
	out := make([]string, a.Len())
	for i := range out {
		if a.IsText() {
			out[i] = a.Text(i)
		} else {
			out[i] = strconv.FormatInt(a.Int(i), 10)
		}
	}
	return out
}
