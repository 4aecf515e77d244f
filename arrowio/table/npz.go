package table

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
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
	var notes []string
	unread := map[string]error{}
	for _, name := range z.Names() {
		a, err := readArray(z, name, o)
		if err != nil {
			// An array of objects or of structures is no obstacle unless it is asked for.
			if slices.Contains([]string{o.Array, o.Labels, o.Logits, o.Probs, o.Time}, name) {
				return nil, err
			}
			notes = append(notes, err.Error())
			unread[name] = err
			continue
		}
		as = append(as, a)
	}
	if len(as) == 0 && len(notes) == 0 {
		return nil, z.Stranger()
	}
	t, err := as.table(o, &notes)
	if err == nil && t.Label == nil {
		for _, name := range labelArrays(cmp.Or(o.Array, o.Logits, o.Probs)) {
			t.NoLabel = cmp.Or(t.NoLabel, unread[name])
		}
		if t.NoLabel != nil { // it is said where labels are needed
			notes = slices.DeleteFunc(notes, func(s string) bool { return s == t.NoLabel.Error() })
		}
	}
	if err != nil && len(notes) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(notes, "; "))
	}
	if err == nil && o.Note != nil && len(notes) > 0 {
		o.Note(strings.Join(notes, "; "))
	}
	return t, err
}

// readNPY reads the scores of a file that holds one array; labels are a file of their own.
func readNPY(f *os.File, o Options) (*Table, error) {
	a, err := npy.OpenArray(f.Name())
	if err != nil {
		return nil, err
	}
	if o.Labels != "" && !isFile(o.Labels) {
		return nil, fmt.Errorf("--label %s: the file is a single array; --label names a .npy file of labels", o.Labels)
	}
	a.Name = strings.TrimSuffix(filepath.Base(f.Name()), ".npy")
	if err := plain(a); err != nil {
		return nil, err
	}
	switch {
	case o.Logits != "" || o.Probs != "" || o.Array != "":
		return nil, fmt.Errorf("the file is a single array, %s: its name or its values say whether these are logits "+
			"or probabilities", a)
	case !isScores(a):
		return nil, fmt.Errorf("array %s holds no scores: want float16, float32 or float64 of shape [n,K], or [n] for "+
			"K = 2", a)
	}
	return arrays{a}.table(o, new([]string))
}

// readArray reads an array. Where scores names another one, matrices that can be nothing but the scores of other
// models keep no elements: a file may hold dozens of them.
func readArray(z *npy.Archive, name string, o Options) (*npy.Array, error) {
	e, err := z.Find(name)
	if err != nil {
		return nil, err
	}
	scores := cmp.Or(o.Array, o.Logits, o.Probs)
	used := name == scores || name == "features" || name == o.Labels || slices.Contains(labelArrays(scores), name) ||
		slices.Contains(weightNames, fold(name))
	if scores != "" && !used && len(e.Shape) > 1 {
		return &npy.Array{Header: e.Header}, nil
	}
	a, err := e.Read()
	if err != nil {
		return nil, err
	}
	return a, plain(a)
}

// plain makes a matrix of an array that is one but for dimensions of 1, and refuses what is no number, text or time.
func plain(a *npy.Array) error {
	a.Squeeze()
	if a.Kind == 'c' {
		return fmt.Errorf("array %s is of complex numbers, which are no scores: save its real part, %s.real", a, a.Name)
	}
	return nil
}

func (as arrays) table(o Options, notes *[]string) (*Table, error) {
	s, err := as.scores(o)
	if err != nil {
		return nil, err
	}
	t := &Table{N: s.Rows(), K: 1}
	if len(s.Shape) == 2 {
		t.K = s.Shape[1]
	}
	switch {
	case s.IsInt():
		t.Scores64 = make([]float64, s.Len())
		for i := range t.Scores64 {
			t.Scores64[i] = s.Number(i)
		}
	case s.Size == 8:
		t.Scores64 = s.Float64s()
	default:
		t.Scores32 = s.Float32s()
	}
	t.Probs, t.Source = t.probsByName(s.Name, o)
	if like := t.likeProbs(); like != "" {
		*notes = append(*notes, like)
	}
	if t.K == 1 {
		if sure := t.neverUnsure(); sure != "" {
			*notes = append(*notes, sure)
		}
		t.K, t.Single, t.Columns = 2, true, []string{s.Name}
		t.Scores32, t.Scores64 = expandBinary(t.Scores32, t.Probs), expandBinary(t.Scores64, t.Probs)
	}
	if o.Classes != nil && len(o.Classes) != t.K {
		return nil, fmt.Errorf("array %s: %d scores a row, and %d classes: %s", s, t.K, len(o.Classes),
			quoteNames(o.Classes))
	}
	if err := as.labels(t, s, o, func(n string) { *notes = append(*notes, n) }); err != nil {
		return nil, err
	}
	return t, as.columns(t, s, o)
}

func isScores(a *npy.Array) bool { return a.IsFloat() && (len(a.Shape) == 1 || len(a.Shape) == 2) }

// areScores allows integers too, of an array whose name says that it holds scores.
func areScores(a *npy.Array) bool { return isScores(a) || a.IsInt() && len(a.Shape) == 2 }

// scores picks the score array.
func (as arrays) scores(o Options) (*npy.Array, error) {
	if name := cmp.Or(o.Array, o.Logits, o.Probs); name != "" {
		a, err := as.need(name)
		if err != nil {
			return nil, err
		}
		if !areScores(a) {
			return nil, fmt.Errorf(
				"array %s holds no scores: want float16, float32 or float64 of shape [n,K], or [n] for K = 2", a)
		}
		return a, nil
	}
	matrix := func(a *npy.Array) bool { return a.IsFloat() && len(a.Shape) == 2 }
	for _, name := range []string{"logits", "probs", "test_logits", "test_probs"} {
		if a := as.get(name); a != nil && areScores(a) && len(a.Shape) == 2 {
			return a, nil
		}
	}
	if a := as.only(func(a *npy.Array) bool { return matrix(a) && !as.isLabel(a, o) }); a != nil {
		return a, nil
	}
	for _, names := range [][]string{logitNames, probNames, scoreNames} {
		for _, name := range names {
			if a := as.folded(name); a != nil && isScores(a) && !as.isLabel(a, o) {
				return a, nil
			}
		}
	}
	if !slices.ContainsFunc(as, isScores) {
		return nil, fmt.Errorf("no array holds scores: want float16, float32 or float64 of shape [n,K], or [n] for "+
			"K = 2; there are: %s", cmp.Or(as.String(), "none"))
	}
	return nil, fmt.Errorf("which array holds the scores? name it; there are: %s", as)
}

// isLabel reports whether an array has a name of labels, and could be them.
func (as arrays) isLabel(a *npy.Array, o Options) bool {
	return a.Name == o.Labels || slices.Contains(labelNames, fold(a.Name)) && fold(a.Name) != "class"
}

// folded is the array of a name, whatever its case.
func (as arrays) folded(name string) *npy.Array {
	if a := as.get(name); a != nil {
		return a
	}
	for _, a := range as {
		if fold(a.Name) == name {
			return a
		}
	}
	return nil
}

// meaning says whether the scores are probabilities, and how that was decided.
func (t *Table) probsByName(name string, o Options) (bool, string) {
	at := "array " + name
	f := fold(name)
	switch {
	case o.Probs != "":
		return true, at
	case o.Logits != "":
		return false, at
	case strings.Contains(f, "probs") || slices.Contains(probNames, f):
		return true, at + ", probabilities by its name"
	case strings.Contains(f, "logit") || slices.Contains(logitNames, f):
		return false, at + ", logits by its name"
	}
	probs, why := t.probabilities()
	return probs, at + ", " + why
}

// labels picks the label array; a table without labels is fine unless one was asked for.
func (as arrays) labels(t *Table, s *npy.Array, o Options, note func(string)) (err error) {
	var y *npy.Array
	if name := o.Labels; isFile(name) {
		return nil
	} else if name != "" {
		if y, err = as.need(name); err != nil {
			return err
		}
	} else {
		for _, name := range labelArrays(s.Name) {
			a := as.folded(name)
			switch {
			case y != nil || a == nil || a == s:
			case upright(a, t.N).Rows() == t.N && a.Kind != 'M':
				y = a
			case t.NoLabel == nil && slices.Contains(labelNames, fold(name)):
				t.NoLabel = noLabels(a, t.N)
			}
		}
		if y == nil {
			if err := as.otherRows(t.N, "label", "labels"); err != nil {
				return err
			}
			y = as.only(func(a *npy.Array) bool { return a.IsInt() && len(a.Shape) == 1 && a.Rows() == t.N })
			if y != nil {
				note("labels from " + y.Name)
			}
		}
	}
	if y == nil {
		return nil
	}
	t.NoLabel = nil
	t.Source += "; labels " + y.Name
	t.Label, err = labelsOf(y, t.N, t.K, o.Classes, note)
	return err
}

// labelArrays are the names of arrays of labels, by preference; scores is the name of the array of scores.
func labelArrays(scores string) []string {
	replaced := strings.NewReplacer("logits", "labels", "probs", "labels").Replace(scores)
	return slices.Concat([]string{replaced, "label", "labels", "test_labels", "y"}, labelNames)
}

// upright makes a column of a matrix of one row with n values, as MATLAB writes vectors.
func upright(a *npy.Array, n int) *npy.Array {
	if len(a.Shape) == 2 && a.Shape[0] == 1 && a.Shape[1] == n {
		a.Shape = []int{n}
	}
	return a
}

func noLabels(a *npy.Array, n int) error {
	return fmt.Errorf("array %s holds no labels: want %d whole numbers, booleans or names, or as many rows in which "+
		"one number is 1", a, n)
}

// otherRows is the error of an array by one of the names that has one value for each row of other scores.
func (as arrays) otherRows(n int, names ...string) error {
	for _, name := range names {
		if a := as.folded(name); a != nil && len(a.Shape) == 1 && a.Rows() != n {
			return fmt.Errorf("array %s: want %d values, one for each row of scores", a, n)
		}
	}
	return nil
}

// labelsOf reads labels of any type: one a row, alone in a row, or one of K that is 1.
func labelsOf(a *npy.Array, n, k int, classes []string, note func(string)) ([]int32, error) {
	columns := 1
	if len(upright(a, n).Shape) == 2 {
		columns = a.Shape[1]
	}
	y := labelReader{column: a.Name}
	number := a.IsInt() || a.IsFloat()
	switch {
	case a.Rows() != n || len(a.Shape) > 2 || columns == 0 || !number && (columns > 1 || !a.IsText()):
		return nil, noLabels(a, n)
	case columns > 1:
		row := make([]float64, columns)
		for i := range n {
			for j := range row {
				row[j] = a.Number(i*columns + j)
			}
			if err := y.hot(row); err != nil {
				return nil, fmt.Errorf("array %s: %w", a, err)
			}
		}
		return y.finish(nil, k, note)
	}
	for i := range n {
		var err error
		switch {
		case a.IsText():
			err = y.text(strings.TrimSpace(a.Text(i)))
		case a.Kind == 'b':
			y.truth(a.Int(i) != 0)
		case a.Kind == 'u' && a.Int(i) < 0:
			err = fmt.Errorf("label %d at row %d is beyond 32 bits: no class has such a number", uint64(a.Int(i)), i)
		case a.IsInt():
			err = y.whole(a.Int(i))
		default:
			err = y.fraction(a.Float(i))
		}
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", a, err)
		}
	}
	return y.finish(classes, k, note)
}

// columns takes further arrays of N rows that are named as the schema's columns; text arrays are slices.
func (as arrays) columns(t *Table, s *npy.Array, o Options) error {
	if err := as.findTimes(t, o); err != nil {
		return err
	}
	if !o.NoWeights {
		if err := as.weights(t); err != nil {
			return err
		}
	}
	for _, a := range as {
		if a == s || a.Rows() != t.N || len(a.Shape) > 2 || len(a.Shape) == 2 && a.Name != "features" {
			continue
		}
		switch {
		case a.Name == "features" && a.IsFloat() && len(a.Shape) == 2:
			t.D, t.Features = a.Shape[1], a.Float32s()
		case slices.Contains(weightNames, fold(a.Name)): // weights
		case a.Name == "served" && a.IsFloat():
			t.Served = a.Float32s()
		case a.Name == "id" && (a.IsInt() || a.IsText()):
			t.IDs = arrayTexts(a)
		case a.IsText() && !strings.HasSuffix(t.Source, "; labels "+a.Name):
			if t.Slices == nil {
				t.Slices = make(map[string][]string)
			}
			t.Slices[a.Name] = arrayTexts(a)
		}
	}
	text := t.Slices
	t.Slices = nil
	t.setText(text)
	return nil
}

// weights reads the array of the rows' weights. A matrix by that name is one of a model.
func (as arrays) weights(t *Table) error {
	if err := as.otherRows(t.N, weightNames...); err != nil {
		return err
	}
	for _, name := range weightNames {
		a := as.folded(name)
		if a == nil || len(a.Shape) != 1 && (len(a.Shape) != 2 || a.Rows() != t.N || a.Shape[1] != 1) {
			continue
		}
		if !a.IsFloat() && !a.IsInt() {
			return fmt.Errorf("array %s holds no weights: want numbers", a)
		}
		t.Weight = make([]float32, t.N)
		for i := range t.Weight {
			t.Weight[i] = float32(a.Number(i))
		}
		return nil
	}
	return nil
}

// findTimes reads the array of times: that which is named, ts, or the first of another name that holds times.
func (as arrays) findTimes(t *Table, o Options) error {
	if o.Time != "" {
		a, err := as.need(o.Time)
		if err != nil {
			return err
		}
		return arrayTimes(a, t)
	}
	for _, name := range timeNames {
		a := as.get(name)
		if a == nil || a.Rows() != t.N || len(a.Shape) != 1 || a.Kind != 'M' && name != timeNames[0] {
			continue
		}
		err := arrayTimes(a, t)
		if err == nil {
			return nil
		}
		if name == timeNames[0] {
			if t.NoTime = err; o.Note != nil {
				o.Note(withoutTimes(err))
			}
			return nil
		}
	}
	t.NoTime = fmt.Errorf("no array ts, and none that --ts names")
	return nil
}

// arrayTimes reads datetime64 of s, ms, us, ns or days, numbers and text.
func arrayTimes(a *npy.Array, t *Table) error {
	var m moments
	unit := map[string]int64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1, "D": 24 * 3600 * 1e9, "h": 3600 * 1e9,
		"m": 60 * 1e9}[a.Unit]
	for i := range t.N {
		var err error
		switch v := int64(0); {
		case a.Kind == 'M' && unit > 0:
			if v = a.Int(i); v > math.MaxInt64/unit || v < -(math.MaxInt64/unit) {
				return fmt.Errorf("array %s: row %d is NaT or outside the years 1677 to 2262", a, i)
			}
			m.nanoseconds(v * unit)
		case a.IsInt():
			err = m.number(a.Int(i))
		case a.IsFloat():
			err = m.fraction(a.Float(i))
		case a.IsText():
			err = m.text(strings.TrimSpace(a.Text(i)))
		default:
			return fmt.Errorf("array %s holds no times: want datetime64, numbers or text", a)
		}
		if err != nil {
			return fmt.Errorf("array %s: row %d: %w", a, i, err)
		}
	}
	t.TS = m.ns
	return nil
}

func arrayTexts(a *npy.Array) []string {
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
