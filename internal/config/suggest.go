package config

import (
	"reflect"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/internal/nearest"
	"github.com/plumbline/plumbline/internal/setting"
)

// everyKey is every key of the configuration, in the order of the file. Its meanings are read from sources, which takes
// milliseconds: a file may have thousands of unknown keys.
var everyKey = sync.OnceValue(func() []setting.Field { return setting.Fields(reflect.TypeFor[Config]()) })

// suggest guesses what an unknown key in a section of type t was meant to be. It returns the nearest key of the
// section, or the same key in another section, or else all keys of the section.
func suggest(t reflect.Type, name string) string {
	known := setting.Keys(t)
	if best := nearest.Of(name, known); best != "" {
		return "nearest is " + best
	}
	for _, f := range everyKey() {
		if f.Key == name {
			return "it belongs at " + f.Path
		}
	}
	return "allowed are " + strings.Join(known, ", ")
}
