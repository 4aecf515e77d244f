package recipe_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sbinet/npyio/npz"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

const featureFile = "c10jpeg_resnet20_features.npz"

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

// realRows reads rows from to to of an array of features, in the order of the file; a to of 0 is its end.
func realRows(t testing.TB, array, labels string, from, to int) *data.Set {
	t.Helper()
	table, err := arrowio.OpenTable(realFile(t, featureFile), arrowio.TableOptions{Array: array, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	if to == 0 {
		to = table.N
	}
	return &data.Set{D: table.K, K: 10, X: table.Scores32[from*table.K : to*table.K], Y: table.Label[from:to]}
}

// realHead is the head that the network was trained with.
func realHead(t testing.TB) *head.Head {
	t.Helper()
	z, err := npz.Open(realFile(t, featureFile))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var w, b []float32
	if err := z.Read("W.npy", &w); err != nil {
		t.Fatal(err)
	}
	if err := z.Read("b.npy", &b); err != nil {
		t.Fatal(err)
	}
	h, err := head.Linear(w, b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
