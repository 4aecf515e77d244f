package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sbinet/npyio/npz"

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
func (f trainFlags) headOfArrays() (h *head.Head, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some broken files
			h, err = nil, fmt.Errorf("%v", r)
		}
	}()
	names := strings.Split(f.headArrays, ",")
	if len(names) != 2 {
		return nil, usageErrorf("--head-arrays %q: allowed are two names with a comma between", f.headArrays)
	}
	z, err := npz.Open(f.head)
	if err != nil {
		return nil, err
	}
	defer z.Close()
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
	if h, err = head.Linear(w, b); err != nil {
		return nil, err
	}
	return h, h.Check()
}

// mostParameters of a head that is read.
const mostParameters = 1 << 28

// headArray reads a float array of so many dimensions.
func headArray(z *npz.Reader, name string, dims int) ([]float32, []int, error) {
	key := strings.TrimSuffix(name, ".npy") + ".npy"
	if !slices.Contains(z.Keys(), key) {
		return nil, nil, fmt.Errorf("no array %q; there are: %s", name, strings.ReplaceAll(strings.Join(z.Keys(), ", "), ".npy", ""))
	}
	d := z.Header(key).Descr
	size := 1
	for _, n := range d.Shape {
		// The file claims it.
		if n < 1 || n > mostParameters/size {
			return nil, nil, fmt.Errorf("array %s has shape %v", name, d.Shape)
		}
		size *= n
	}
	if len(d.Shape) != dims || d.Fortran {
		return nil, nil, fmt.Errorf("array %s has shape %v (by columns: %v), allowed are %d dimensions, by rows", name, d.Shape, d.Fortran, dims)
	}
	switch d.Type {
	case "<f4":
		v := make([]float32, size)
		return v, d.Shape, z.Read(key, &v)
	case "<f8":
		wide, v := make([]float64, size), make([]float32, size)
		err := z.Read(key, &wide)
		for i, x := range wide {
			v[i] = float32(x)
		}
		return v, d.Shape, err
	}
	return nil, nil, fmt.Errorf("array %s is of type %s, allowed are <f4 and <f8", name, d.Type)
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
