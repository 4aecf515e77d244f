package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// ReadHead reads a head: a .safetensors file, or an .npz with the arrays of its weights (K×D) and bias.
func ReadHead(file, weights, bias string) (*head.Head, error) {
	if filepath.Ext(file) == ".npz" {
		return headOfArrays(file, weights, bias)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	h, _, err := artefact.ReadSafetensors(text)
	return h, err
}

// ReadRows reads the arrays features (float32, n×D) and labels of an npz file, of K classes, into memory.
func ReadRows(file string, k int) (*data.Set, error) {
	a, err := npy.ReadArchive(file, "features", "labels")
	if err != nil {
		return nil, err
	}
	s := &data.Set{D: a["features"].Columns(), K: k, X: a["features"].F32, Y: a["labels"].Int}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// headOfArrays reads a linear head from two arrays of an npz file.
func headOfArrays(path, weights, bias string) (*head.Head, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	z, err := npy.NewArchive(file, st.Size())
	if err != nil {
		return nil, err
	}
	w, shape, err := headArray(z, weights, 2)
	if err != nil {
		return nil, err
	}
	b, biases, err := headArray(z, bias, 1)
	if err != nil {
		return nil, err
	}
	if shape[0] != biases[0] {
		return nil, fmt.Errorf("array %s is %d×%d, allowed K×D with the %d values of %s", weights, shape[0], shape[1],
			biases[0], bias)
	}
	h, err := head.Linear(w, b)
	if err != nil {
		return nil, err
	}
	return h, h.Check()
}

// mostParameters of a head that is read.
const mostParameters = 1 << 28

// headArray reads a float array of so many dimensions.
func headArray(z *npy.Archive, name string, dims int) ([]float32, []int, error) {
	e, err := z.Find(strings.TrimSuffix(name, ".npy"))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("no array %q; there are: %s", name, strings.Join(z.Names(), ", "))
	}
	if err != nil {
		return nil, nil, err
	}
	if e.Count < 1 || e.Count > mostParameters {
		return nil, nil, fmt.Errorf("array %s has shape %v", name, e.Shape)
	}
	if len(e.Shape) != dims || e.Fortran {
		return nil, nil, fmt.Errorf("array %s has shape %v (by columns: %v), allowed are %d dimensions, by rows", name,
			e.Shape, e.Fortran, dims)
	}
	if !e.IsFloat() || e.Size == 2 {
		return nil, nil, fmt.Errorf("array %s is of type %s, allowed are float32 and float64", name, e.Dtype())
	}
	a, err := e.Read()
	if err != nil {
		return nil, nil, err
	}
	return a.Float32s(), e.Shape, nil
}
