package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// labelReader holds the labels of a file as they are read, before it is known which classes there are.
type labelReader struct {
	column string
	class  []int32 // numbers; noLabel where there is none. With names, places in them
	names  []string
	place  map[string]int32
	first  []int // the first row of a name
	truths bool  // numbers 0 and 1 are false and true
}

// noLabel is a label that is not there. It is none that a file can hold: -1 may be a class.
const noLabel = math.MinInt32

// ignoredLabel is what PyTorch and Hugging Face skip, as ignore_index.
const ignoredLabel = -100

// mostNames bounds the different texts of a label column.
const mostNames = 1 << 20

func (l *labelReader) none() { l.class = append(l.class, noLabel) }

func (l *labelReader) whole(v int64) error {
	if v <= noLabel || v > math.MaxInt32 {
		return fmt.Errorf("label %d at row %d is beyond 32 bits: no class has such a number", v, len(l.class))
	}
	l.class = append(l.class, int32(v))
	return nil
}

func (l *labelReader) fraction(x float64) error {
	switch {
	case x != x:
		l.none()
		return nil
	case x != math.Trunc(x):
		return fmt.Errorf("label %v at row %d is no whole number: a label is a class, not a score", x, len(l.class))
	}
	return l.whole(int64(min(max(x, math.MinInt32), math.MaxInt32+1)))
}

// unknownTexts are what writers put for a value that is not there.
var unknownTexts = []string{"", "nan", "none", "null", "na", "n/a", "<na>", "nat"}

func isUnknown(s string) bool { return slices.Contains(unknownTexts, strings.ToLower(s)) }

// text takes a text. One that stands for no value may be the name of a class: see ignore.
func (l *labelReader) text(s string) error {
	if s == "" {
		l.none()
		return nil
	}
	at, ok := l.place[s]
	if !ok {
		if len(l.names) == mostNames {
			return fmt.Errorf("more than %d different texts: are these labels?", mostNames)
		}
		if l.place == nil {
			l.place = map[string]int32{}
		}
		at = int32(len(l.names))
		s = strings.Clone(s)
		l.place[s] = at
		l.names, l.first = append(l.names, s), append(l.first, len(l.class))
	}
	l.class = append(l.class, at)
	return nil
}

// ignore makes labels unknown whose text stands for no value, unless it is the name of a class.
func (l *labelReader) ignore(classes []string) {
	names, first, to := []string(nil), []int(nil), make([]int32, len(l.names))
	for i, name := range l.names {
		if to[i] = noLabel; !isUnknown(name) || slices.Contains(classes, name) {
			to[i] = int32(len(names))
			names, first = append(names, name), append(first, l.first[i])
		}
	}
	if len(names) == len(l.names) {
		return
	}
	for i, at := range l.class {
		if at != noLabel {
			l.class[i] = to[at]
		}
	}
	l.names, l.first = names, first
}

// hot reads a row of K numbers, one of which is 1.
func (l *labelReader) hot(row []float64) error {
	y := -1
	for k, x := range row {
		switch {
		case x == 1 && y < 0:
			y = k
		case x != 0 && x == x:
			return fmt.Errorf("row %d holds %v: allowed is one 1 among zeros", len(l.class), x)
		}
	}
	if y < 0 && !slices.ContainsFunc(row, func(x float64) bool { return x != x }) {
		return fmt.Errorf("row %d holds no 1: allowed is one 1 among zeros", len(l.class))
	}
	if y < 0 {
		l.none()
		return nil
	}
	return l.whole(int64(y))
}

// finish says which class each label is, -1 where it is not known; note is told what was guessed.
func (l *labelReader) finish(classes []string, k int, note func(string)) ([]int32, error) {
	l.ignore(classes)
	if l.names != nil {
		of, err := l.classesOf(classes, k, note)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", quoteName(l.column), err)
		}
		for i, at := range l.class {
			if at != noLabel {
				l.class[i] = of[at]
			}
		}
	} else if no, yes, ok := truths(classes, 0); ok && l.truths {
		for i, y := range l.class {
			if y != noLabel {
				l.class[i] = [2]int32{no, yes}[y]
			}
		}
	} else if of := numbersOf(classes); of != nil {
		if err := l.renumber(of, classes); err != nil {
			return nil, fmt.Errorf("column %s: %w", quoteName(l.column), err)
		}
	}
	lowest, highest := int32(math.MaxInt32), int32(math.MinInt32)
	for i, y := range l.class {
		if y == noLabel || y == ignoredLabel {
			l.class[i] = -1
			continue
		}
		lowest, highest = min(lowest, y), max(highest, y)
		if y == 0 {
			lowest = 0
		}
	}
	if k == 2 && lowest == -1 && highest == 1 && !slices.Contains(l.class, 0) {
		note("labels are -1 and 1, and -1 means not known; --classes=-1,1 makes it class 0")
	}
	return l.class, nil
}

// numbersOf are classes that are whole numbers, by number; nil where one is not.
func numbersOf(classes []string) map[int32]int32 {
	of := map[int32]int32{}
	for k, c := range classes {
		n, ok := wholeText(c)
		if !ok {
			return nil
		}
		of[n] = int32(k)
	}
	if len(of) == 0 {
		return nil
	}
	return of
}

func wholeText(s string) (int32, bool) {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return int32(n), true
	}
	x, err := parseFloat(s)
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= math.MaxInt32 {
		return 0, false
	}
	return int32(x), true
}

func (l *labelReader) renumber(of map[int32]int32, classes []string) error {
	for i, y := range l.class {
		if y == noLabel {
			continue
		}
		k, ok := of[y]
		switch {
		case ok:
			l.class[i] = k
		case y == -1 || y == ignoredLabel:
			l.class[i] = noLabel
		default:
			return fmt.Errorf("%d at row %d is none of the classes %s", y, i, quoteNames(classes))
		}
	}
	return nil
}

// classesOf are the classes of the names: by name, as numbers, or, where there are no names of classes, by their order
// as text, which is that of scikit-learn.
func (l *labelReader) classesOf(classes []string, k int, note func(string)) ([]int32, error) {
	if of, ok := l.byName(classes); ok {
		return of, nil
	}
	if of, ok := l.byNumber(classes); ok {
		return of, nil
	}
	if of, ok := l.byTruth(classes, k); ok {
		return of, nil
	}
	if classes != nil {
		for i, name := range l.names {
			if !slices.Contains(classes, name) {
				return nil, fmt.Errorf("%s at row %d is none of the classes %s", quoteName(name), l.first[i],
					quoteNames(classes))
			}
		}
	}
	for i, name := range l.names {
		if _, err := parseFloat(name); err == nil {
			if _, ok := wholeText(name); !ok {
				return nil, fmt.Errorf("label %s at row %d is no whole number: a label is a class, not a score",
					quoteName(name), l.first[i])
			}
		}
	}
	sorted := slices.Sorted(slices.Values(l.names))
	if k == 2 && len(sorted) > k {
		return nil, fmt.Errorf("%d different texts (%s) for 2 classes; if the scores are confidences in the predicted "+
			"class, the label must be 1 where that was right, else 0", len(sorted), quoteNames(sorted))
	}
	if len(sorted) > k {
		return nil, fmt.Errorf("%d different texts (%s) for %d classes: there must be a score for each", len(sorted),
			quoteNames(sorted), k)
	}
	if len(sorted) != k {
		return nil, fmt.Errorf("%d different texts (%s) for %d classes: --classes must name the classes in the order "+
			"of the scores", len(sorted), quoteNames(sorted), k)
	}
	note("classes by the order of their names: " + quoteNames(sorted) + " (--classes sets another)")
	of, _ := l.byName(sorted)
	return of, nil
}

// byName looks every name up among the classes.
func (l *labelReader) byName(classes []string) ([]int32, bool) {
	at := map[string]int32{}
	for k, c := range classes {
		at[c] = int32(k)
	}
	of := make([]int32, len(l.names))
	for i, name := range l.names {
		k, ok := at[name]
		if !ok {
			return nil, false
		}
		of[i] = k
	}
	return of, len(classes) > 0
}

// byNumber takes names that are whole numbers, 1.0 too.
func (l *labelReader) byNumber(classes []string) ([]int32, bool) {
	numbers := numbersOf(classes)
	of := make([]int32, len(l.names))
	for i, name := range l.names {
		y, ok := wholeText(name)
		if !ok {
			return nil, false
		}
		if numbers == nil {
			of[i] = y
		} else if of[i], ok = numbers[y]; !ok && y != -1 && y != ignoredLabel {
			return nil, false
		} else if !ok {
			of[i] = noLabel
		}
	}
	return of, true
}

// byTruth takes true and false: as classes of such names, in any case, or of the names 1 and 0; else as classes 1 and 0
// of two.
func (l *labelReader) byTruth(classes []string, k int) ([]int32, bool) {
	no, yes, ok := truths(classes, k)
	of := make([]int32, len(l.names))
	for i, name := range l.names {
		switch strings.ToLower(name) {
		case "true":
			of[i] = yes
		case "false":
			of[i] = no
		default:
			return nil, false
		}
	}
	return of, ok
}

// truths are the classes of false and true.
func truths(classes []string, k int) (no, yes int32, ok bool) {
	at := func(name string) int32 {
		return int32(slices.IndexFunc(classes, func(c string) bool { return strings.EqualFold(c, name) }))
	}
	if no, yes = at("false"), at("true"); no >= 0 && yes >= 0 {
		return no, yes, true
	}
	if no, yes = at("0"), at("1"); no >= 0 && yes >= 0 {
		return no, yes, true
	}
	return 0, 1, k == 2
}

// truth takes true or false, as 1 and 0 unless classes have such names.
func (l *labelReader) truth(v bool) {
	l.truths = true
	y := int32(0)
	if v {
		y = 1
	}
	l.class = append(l.class, y)
}
