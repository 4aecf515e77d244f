package table

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
)

// filler makes a table of the columns that a plan names.
type filler struct {
	p      *columnPlan
	t      *Table
	y      labelReader
	when   moments
	text   map[string]*[]string
	hot    []float64 // labels of one class a column, row by row
	noTime error     // why a column that no flag names has no times after all
}

func newFiller(p *columnPlan) *filler {
	f := &filler{p: p, t: &Table{K: p.k, D: p.d}, text: map[string]*[]string{}}
	f.y.column = strings.Join(p.labels, ", ")
	for i, r := range p.roles {
		if r.part == textColumn {
			f.text[p.fields[i].name] = new([]string)
		}
	}
	return f
}

// timeError is an error of a time column; where says of which row, unless it does itself. Where no flag names the
// column, the table is read without times: most of its readers need none, and the others tell why there are none.
func (f *filler) timeError(where string, err error) error {
	if err == nil || f.p.options.Time != "" {
		return err
	}
	f.noTime = fmt.Errorf("column %s: %s%w", quoteName(f.p.time), where, err)
	return nil
}

// hotRow ends a row of labels in columns.
func (f *filler) hotRow(row []float64) error {
	if len(f.p.labels) < 2 {
		return nil
	}
	if err := f.y.hot(row); err != nil {
		return fmt.Errorf("columns %s: %w", quoteNames(f.p.labels), err)
	}
	return nil
}

// table ends the reading.
func (f *filler) table() (*Table, error) {
	t, p := f.t, f.p
	if t.N == 0 {
		return nil, fmt.Errorf("no rows")
	}
	if err := f.scores(); err != nil {
		return nil, err
	}
	t.TS = f.when.ns
	if f.noTime != nil {
		t.TS, t.NoTime = nil, f.noTime
		p.notes = append(p.notes, withoutTimes(f.noTime))
	}
	var err error
	if p.labels != nil {
		if t.Label, err = f.y.finish(p.classes, t.K, func(s string) { p.notes = append(p.notes, s) }); err != nil {
			return nil, err
		}
	}
	if p.labels == nil {
		t.NoLabel = p.noLabel
	}
	t.Left = quoteNames(p.left())
	text := map[string][]string{}
	for name, v := range f.text {
		text[name] = *v
	}
	t.setText(text)
	if t.NoTime == nil && p.time == "" {
		t.NoTime = fmt.Errorf("no column ts, and none that --ts names")
	}
	return t, nil
}

// withoutTimes notes why a column of times has none.
func withoutTimes(err error) string { return "read without times: " + err.Error() }

// scores decides what the numbers are, and makes two of one.
func (f *filler) scores() error {
	t, p := f.t, f.p
	name := "columns "
	if len(p.columns) == 1 {
		name = "column "
	}
	t.Source, t.Columns = name+quoteNames(p.columns), p.columns
	if p.classes != nil && !p.single && t.K != len(p.classes) || p.single && p.classes != nil && len(p.classes) != 2 {
		return fmt.Errorf("%s: %d scores a row, and %d classes: %s", t.Source, t.K, len(p.classes),
			quoteNames(p.classes))
	}
	t.Probs = p.means == asProbs
	if p.means == byValue {
		if p.single && t.whole() {
			return fmt.Errorf("%s: all values are whole: predicted classes are no scores, which --logits or --prob "+
				"names", t.Source)
		}
		var why string
		t.Probs, why = t.probabilities()
		p.notes = append(p.notes, why)
	} else if like := t.likeProbs(); like != "" {
		p.notes = append(p.notes, like)
	}
	if p.single || p.list && t.K == 1 {
		if sure := t.neverUnsure(); sure != "" {
			p.notes = append(p.notes, sure)
		}
		t.K, t.Single = 2, true
		t.Scores32, t.Scores64 = expandBinary(t.Scores32, t.Probs), expandBinary(t.Scores64, t.Probs)
	}
	return nil
}

// score is number i of the slab.
func (t *Table) score(i int) float64 {
	if t.Scores64 != nil {
		return t.Scores64[i]
	}
	return float64(t.Scores32[i])
}

// whole reports whether every score is a whole number.
func (t *Table) whole() bool {
	for i := range t.N * t.K {
		if x := t.score(i); x == x && x != math.Trunc(x) {
			return false
		}
	}
	return true
}

// probTolerance is how far a row of scores without a telling name may sum from 1: rows rounded to float16.
const probTolerance = 1e-3

// probabilities says whether the scores are probabilities by their values, and why.
func (t *Table) probabilities() (bool, string) {
	for i := range t.N {
		sum := 0.0
		for j := range t.K {
			x := t.score(i*t.K + j)
			if x != x {
				return false, "logits because a value is missing" // refused later, by name
			}
			if !(x >= 0 && x <= 1) {
				return false, fmt.Sprintf("logits because row %d holds %v", i, x)
			}
			sum += x
		}
		if t.K > 1 && math.Abs(sum-1) > probTolerance {
			return false, fmt.Sprintf("logits because row %d sums to %v", i, sum)
		}
	}
	if t.K == 1 {
		return true, "probabilities because every value lies in [0,1]"
	}
	return true, "probabilities because every row lies in [0,1] and sums to 1"
}

// likeProbs says that scores are taken as logits, by their name, that look like probabilities; else "".
func (t *Table) likeProbs() string {
	enough := 3 // rows; of fewer it may be chance
	if t.K == 1 {
		enough = 50
	}
	if t.Probs || t.N < enough {
		return ""
	}
	is, why := t.probabilities()
	if !is {
		return ""
	}
	return fmt.Sprintf("%s: taken as logits, although %s, as of probabilities, which --prob names", t.Source,
		strings.TrimPrefix(why, "probabilities because "))
}

// neverUnsure says what one probability a row is taken for where none is below one half, as confidences are; else "".
func (t *Table) neverUnsure() string {
	const enough = 50 // rows; of fewer it may be chance
	if !t.Probs || t.N < enough {
		return ""
	}
	for i := range t.N {
		if !(t.score(i) >= .5) {
			return ""
		}
	}
	return "no probability is below 0.5, and each is taken as that of class 1: if they are confidences in the " +
		"predicted class, the label must be 1 where that was right, else 0"
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

// isFile reports whether a name of labels is that of a file of them.
func isFile(labels string) bool { return strings.HasSuffix(labels, ".npy") }

// labelFile reads the labels of a .npy file.
func (t *Table) labelFile(o Options) error {
	a, err := npy.OpenArray(o.Labels)
	if err != nil {
		return err
	}
	if t.Label, err = labelsOf(a, t.N, t.K, o.Classes, o.Note); err != nil {
		return err
	}
	return nil
}
