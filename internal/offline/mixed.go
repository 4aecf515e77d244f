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
		for _, v := range t.Slices[column] {
			found[v] = true
		}
		if len(found) < 2 {
			continue
		}
		names := slices.Sorted(maps.Keys(found))
		if len(names) > mostNamed {
			names = append(names[:mostNamed], "…")
		}
		if names[0] == "" {
			names[0] = "none"
		}
		of.Note(fmt.Sprintf("%s: rows of %d %ss (%s) are %s", file, len(found), column, strings.Join(names, ", "),
			strings.ReplaceAll(done, "COLUMN", column)))
		return
	}
}
