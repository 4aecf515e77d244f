package calibrator_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio/npz"
)

// realFile returns the path of a real data file, or skips the test where the folder is absent.
func realFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("PLUMBLINE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data") // beside the repository's root
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data %s is absent: set PLUMBLINE_DATA to its folder", name)
	}
	return path
}

// readScores returns an n×K float32 array and its labels, which may be of any integer type.
func readScores(t testing.TB, file, scores, labels string) ([]float32, []int32) {
	t.Helper()
	z, err := npz.Open(realFile(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var s []float32
	if err := z.Read(scores+".npy", &s); err != nil {
		t.Fatalf("%s: %v", scores, err)
	}
	var y []int32
	switch kind := z.Header(labels + ".npy").Descr.Type; kind {
	case "|u1":
		y = readLabels[uint8](t, z, labels)
	case "<i4":
		y = readLabels[int32](t, z, labels)
	case "<i8":
		y = readLabels[int64](t, z, labels)
	default:
		t.Fatalf("%s: type %s", labels, kind)
	}
	return s, y
}

func readLabels[T uint8 | int32 | int64](t testing.TB, z *npz.Reader, name string) []int32 {
	t.Helper()
	var raw []T
	if err := z.Read(name+".npy", &raw); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	y := make([]int32, len(raw))
	for i, v := range raw {
		y[i] = int32(v)
	}
	return y
}
