package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/arrowio/npy"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// currentHead reads --head; nil where there is none.
func (f trainFlags) currentHead() (*head.Head, error) {
	switch filepath.Ext(f.head) {
	case "":
		if f.head == "" {
			return nil, nil
		}
	case ".safetensors":
		text, err := os.ReadFile(f.head)
		if err != nil {
			return nil, fmt.Errorf("--head: %w", err)
		}
		h, _, err := artefact.ReadSafetensors(text)
		if err != nil {
			return nil, fmt.Errorf("--head %s: %w", f.head, err)
		}
		return h, nil
	case ".npz":
		h, err := f.headOfArrays()
		if err != nil {
			return nil, fmt.Errorf("--head %s: %w", f.head, err)
		}
		return h, nil
	}
	return nil, usageErrorf("--head %s: allowed are files .safetensors and .npz", f.head)
}

// headOfArrays reads a linear head from the two arrays of --head-arrays.
func (f trainFlags) headOfArrays() (*head.Head, error) {
	names := strings.Split(f.headArrays, ",")
	if len(names) != 2 {
		return nil, usageErrorf("--head-arrays %q: allowed are two names with a comma between", f.headArrays)
	}
	file, err := os.Open(f.head)
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
	w, shape, err := headArray(z, names[0], 2)
	if err != nil {
		return nil, err
	}
	b, biases, err := headArray(z, names[1], 1)
	if err != nil {
		return nil, err
	}
	if shape[0] != biases[0] {
		return nil, fmt.Errorf("array %s is %d×%d, allowed K×D with the %d values of %s", names[0], shape[0], shape[1], biases[0], names[1])
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
		return nil, nil, fmt.Errorf("array %s has shape %v (by columns: %v), allowed are %d dimensions, by rows", name, e.Shape, e.Fortran, dims)
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

// checkFiles refuses, before any work, to write over what is there.
func (f trainFlags) checkFiles() error {
	if f.checkpoint != "" && !f.resume {
		if err := checkFree("--checkpoint", f.checkpoint, f.force); err != nil {
			return fmt.Errorf("%w, --resume goes on from it", err)
		}
	}
	if f.out == "" {
		return nil
	}
	st, err := os.Stat(f.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("-o: %w", err)
	case !st.IsDir():
		return fmt.Errorf("-o %s: not a directory", f.out)
	}
	for _, name := range trainFiles {
		if err := checkFree("-o", filepath.Join(f.out, name), f.force); err != nil {
			return err
		}
	}
	return nil
}

// save writes the checkpoint, whole or not at all.
func (f trainFlags) save(t *recipe.Training) error {
	if f.checkpoint == "" {
		return nil
	}
	b, err := t.Checkpoint()
	if err != nil {
		return err
	}
	err = replaceFile(f.checkpoint, true, func(temporary string) error { return os.WriteFile(temporary, b, 0o600) })
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	return nil
}

func (f trainFlags) restore(t *recipe.Training) error {
	b, err := os.ReadFile(f.checkpoint)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if err := t.Restore(b); err != nil {
		return fmt.Errorf("--resume from %s: %w", f.checkpoint, err)
	}
	return nil
}
