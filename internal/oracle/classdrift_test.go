package oracle_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
)

// driftSeed is a seed whose classes become more frequent than they were, by enough for a correction.
const driftSeed = 116

var labelShift = regexp.MustCompile(`, label_shift: \w+`)

// driftWorld runs the world of driftSeed with another value of label_shift, and counts what it puts out.
func driftWorld(t *testing.T, key string) (*world, map[string]int) {
	t.Helper()
	p := newPlan(driftSeed)
	p.yaml = labelShift.ReplaceAllString(p.yaml, key)
	w, seen := runWorld(t, p), map[string]int{}
	w.count(seen)
	return w, seen
}

// TestClassDrift runs a world whose shares of classes move while label_shift has its default, off. The same world with
// at_once publishes a correction: that there is none here is the key's doing.
func TestClassDrift(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	w, seen := driftWorld(t, "")
	if strings.Contains(w.plan.yaml, "label_shift") {
		t.Fatalf("the key is set: %s", w.plan.yaml)
	}
	var got lines
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		got.add(name, "%d", seen[name])
	}
	golden(t, "classdrift.golden", append(got, w.outputLines()...))
	_, seen = driftWorld(t, ", label_shift: at_once")
	if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(name string) bool {
		return strings.HasPrefix(name, "calibrators | label_shift | full")
	}) {
		t.Error("no correction with label_shift at_once: the drift of this world is too small")
	}
}
