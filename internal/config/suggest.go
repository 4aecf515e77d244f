package config

import (
	"reflect"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/internal/setting"
)

// everyKey is every key of the configuration, in the order of the file. Its meanings are read from sources, which takes
// milliseconds: a file may have thousands of unknown keys.
var everyKey = sync.OnceValue(func() []setting.Field { return setting.Fields(reflect.TypeFor[Config]()) })

// suggest guesses what an unknown key in a section of type t was meant to be. It returns the nearest key of the
// section, or the same key in another section, or else all keys of the section.
func suggest(t reflect.Type, name string) string {
	known := setting.Keys(t)
	best, distance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return "nearest is " + best
	}
	for _, f := range everyKey() {
		if f.Key == name {
			return "it belongs at " + f.Path
		}
	}
	return "allowed are " + strings.Join(known, ", ")
}

// editDistance returns the Levenshtein distance between a and b in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			previous, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, previous+cost)
		}
	}
	return row[len(b)]
}
