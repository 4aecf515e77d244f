package offline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/internal/feed"
)

// mostNamed is how many versions a note names.
const mostNamed = 6

// noteMixed notes that rows of several models, or versions, are taken for those of one; done says what for.
func noteMixed(of table.Options, file string, t *table.Table, done string) {
	if of.Note == nil {
		return
	}
	for _, column := range []string{"model", "version"} {
		found := map[string]bool{}
		for i, v := range t.Slices[column] {
			if t.Label == nil || t.Label[i] >= 0 {
				found[v] = true
			}
		}
		if len(found) < 2 {
			continue
		}
		of.Note(fmt.Sprintf("%s: rows of %d %ss (%s) are %s", file, len(found), column, named(found),
			strings.ReplaceAll(done, "COLUMN", column)))
		return
	}
}

// NoteCalibrated notes what makes the probabilities that a calibrator gives to the rows of a file wrong without a sign.
func NoteCalibrated(of table.Options, calFile string, c calibrator.Calibrator, file string, t *table.Table) {
	all := *t
	all.Label = nil
	noteMixed(of, file, &all, "calibrated by "+calFile+", which fits those that it was fitted on")
	if of.Note != nil && t.Probs && compare.OfLogits(c, t.K) {
		of.Note(fmt.Sprintf("%s holds probabilities: %s (%s) is wrong for them if it was fitted on logits", file,
			calFile, c.Method()))
	}
}

// NoteLeft notes what of a file is not in the one that is made of it.
func NoteLeft(of table.Options, file string, t *table.Table) {
	if of.Note == nil {
		return
	}
	if t.Left != "" {
		of.Note(file + ": columns left out: " + t.Left)
	}
	feed.NoteNoLabels(of, file, t)
}

// named lists some names.
func named(found map[string]bool) string {
	names := slices.Sorted(maps.Keys(found))
	if len(names) > mostNamed {
		names = append(names[:mostNamed], "…")
	}
	if names[0] == "" {
		names[0] = "none"
	}
	return strings.Join(names, ", ")
}

// choose returns the rows that have the wanted values of the columns model and version, nil where all have. From other
// rows it takes the label, so that nothing is said of them. A table without such a column has the wanted value where
// unnamed is true.
func choose(t *table.Table, only map[string]string, unnamed bool) (keep []int, err error) {
	keep = make([]int, t.N)
	for i := range keep {
		keep[i] = i
	}
	for _, column := range slices.Sorted(maps.Keys(only)) {
		want := only[column]
		values, err := sliceColumn(t, column)
		if err != nil && unnamed {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--%s %q: no row names its %[1]s", column, want)
		}
		found := map[string]bool{}
		keep = slices.DeleteFunc(keep, func(i int) bool {
			found[values[i]] = true
			return values[i] != want
		})
		if len(keep) == 0 {
			return nil, fmt.Errorf("--%s %q: no row is of it; there are: %s", column, want, named(found))
		}
	}
	if len(keep) == t.N {
		return nil, nil
	}
	if t.Label != nil {
		labels := slices.Repeat([]int32{-1}, t.N)
		for _, i := range keep {
			labels[i] = t.Label[i]
		}
		t.Label = labels
	}
	return keep, nil
}
