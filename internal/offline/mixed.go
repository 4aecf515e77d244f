package offline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/arrowio/table"
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
