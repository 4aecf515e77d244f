package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/internal/feed"
)

// inputSpec is a FILE[:array] argument.
type inputSpec struct{ path, array string }

// parseInput splits FILE:array at the last colon, unless a file has that whole name. array is what holds where the
// argument names none.
func parseInput(arg, array string) inputSpec {
	if _, err := os.Stat(arg); err == nil {
		return inputSpec{arg, array}
	}
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.ContainsAny(arg[i:], `/\`) {
		return inputSpec{arg[:i], arg[i+1:]}
	}
	return inputSpec{arg, array}
}

// model is the name of a model whose file says none: the file's name, with that of the array.
func (s inputSpec) model() string {
	name := filepath.Base(s.path)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if s.array != "" {
		name += "-" + s.array
	}
	return name
}

// readFeedRows reads a file for the feed.
func readFeedRows(arg, array, labels string, slices []string) (*feed.Rows, error) {
	return nil, fmt.Errorf("%s: files cannot be read yet", parseInput(arg, array).path)
}
