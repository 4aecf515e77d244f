package recipe_test

import (
	"testing"

	"github.com/plumbline/plumbline/arrowio/table"
	"github.com/plumbline/plumbline/internal/realdata"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

const featureFile = "c10jpeg_resnet20_features.npz"

// realRows reads rows from to to of an array of features, in the order of the file; a to of 0 is its end.
func realRows(t testing.TB, array, labels string, from, to int) *data.Set {
	t.Helper()
	table, err := table.Open(realdata.File(t, featureFile), table.Options{Array: array, Labels: labels})
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
	arrays := realdata.Arrays(t, featureFile, "W", "b")
	h, err := head.Linear(arrays["W"].F32, arrays["b"].F32)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
