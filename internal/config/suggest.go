package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline/plumbline/internal/nearest"
	"github.com/plumbline/plumbline/internal/setting"
)

// everyKey is every key of the configuration, in the order of the file. Its meanings are read from sources, which takes
// milliseconds: a file may have thousands of unknown keys.
var everyKey = sync.OnceValue(func() []setting.Field { return setting.Fields(reflect.TypeFor[Config]()) })

var itemIndex = regexp.MustCompile(`\[[0-9]+\]`)

// keyAt is the key at a path in a file, and for an item of a list the key of the list.
func keyAt(path string) (setting.Field, bool) {
	path = strings.TrimSuffix(itemIndex.ReplaceAllString(path, "[]"), "[]")
	i := slices.IndexFunc(everyKey(), func(f setting.Field) bool { return f.Path == path })
	if i < 0 {
		return setting.Field{}, false
	}
	return everyKey()[i], true
}

// MustBe says what a value of a type must be.
func MustBe(t reflect.Type) string { return setting.MustBe(t) }

// mustBe says what the value at path must be.
func mustBe(path string) string {
	f, _ := keyAt(path)
	return f.MustBe()
}

// suggest guesses what an unknown key in a section of type t was meant to be: a key of the section without keys just
// before it, where the indentation is missing, else the nearest key of its own section, else the same key in other
// sections. Otherwise it returns all keys of the section.
func suggest(t reflect.Type, empty, name string) string {
	if empty != "" {
		if _, ok := keyAt(setting.Join(empty, name)); ok {
			return "it belongs at " + setting.Join(empty, name) + ": indent it below " + empty
		}
	}
	known := setting.Keys(t)
	if best := nearest.Of(name, known); best != "" {
		return "nearest is " + best
	}
	var elsewhere []string
	for _, f := range everyKey() {
		if f.Key == name {
			elsewhere = append(elsewhere, f.Path)
		}
	}
	if len(elsewhere) > 0 {
		return "it belongs at " + strings.Join(elsewhere, " or ")
	}
	return "allowed are " + strings.Join(known, ", ")
}
