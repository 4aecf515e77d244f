package realdata

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/arrowio/npy"
)

// variable names the folder of the data sets.
const variable = "PLUMBLINE_DATA"

// Find returns the path of a file of real data, and whether it is there.
func Find(name string) (path string, ok bool) {
	path = filepath.Join(folder(), name)
	_, err := os.Stat(path)
	return path, err == nil
}

// folder is $PLUMBLINE_DATA, or ../shared/data beside the root of the repository that the working directory is in.
func folder() string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	beside := filepath.Join("..", "shared", "data")
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if mod, readErr := os.ReadFile(filepath.Join(dir, "go.mod")); readErr == nil &&
			bytes.HasPrefix(mod, []byte("module github.com/plumbline/plumbline\n")) {
			return filepath.Join(dir, beside)
		}
		dir = filepath.Dir(dir)
	}
	return beside
}

// File returns the path of a file of real data. Without it the test is skipped; where $PLUMBLINE_DATA says that the
// data is there, it fails.
func File(t testing.TB, name string) string {
	t.Helper()
	path, ok := Find(name)
	if dir := os.Getenv(variable); !ok && dir != "" {
		t.Fatalf("%s is %s, which has no %s", variable, dir, name)
	}
	if !ok {
		t.Skipf("real data %s is absent: set %s to its folder", name, variable)
	}
	return path
}

// Arrays reads the named arrays of a .npz file, all of them where no name is given.
func Arrays(t testing.TB, file string, names ...string) map[string]npy.Numbers {
	t.Helper()
	arrays, err := npy.ReadArchive(File(t, file), names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, ok := arrays[name]; !ok {
			t.Fatalf("%s has no array %q", file, name)
		}
	}
	return arrays
}

// Scores reads the float32 scores of n rows, n×K, and their n labels, which may be of any integer type.
func Scores(t testing.TB, file, scores, labels string) ([]float32, []int32) {
	t.Helper()
	arrays := Arrays(t, file, scores, labels)
	z, y := arrays[scores], arrays[labels]
	if z.F32 == nil || len(y.Int) == 0 || z.Shape[0] != len(y.Int) {
		t.Fatalf("%s: %s of shape %v is no float32 scores of the %d rows of %s", file, scores, z.Shape, len(y.Int),
			labels)
	}
	return z.F32, y.Int
}
