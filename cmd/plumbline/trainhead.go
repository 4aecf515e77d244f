package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// currentHead reads --head; nil where there is none.
func (f trainFlags) currentHead() (*head.Head, error) {
	if f.head == "" {
		return nil, nil
	}
	weights, bias, two := strings.Cut(f.headArrays, ",")
	switch ext := filepath.Ext(f.head); {
	case ext != ".safetensors" && ext != ".npz":
		return nil, usageErrorf("--head %s: allowed are files .safetensors and .npz", f.head)
	case ext == ".npz" && (!two || strings.Contains(bias, ",")):
		return nil, usageErrorf("--head-arrays %q: allowed are two names with a comma between", f.headArrays)
	}
	h, err := dataset.ReadHead(f.head, weights, bias)
	if err != nil {
		return nil, fmt.Errorf("--head %s: %w", f.head, err)
	}
	return h, nil
}

// checkFiles refuses, before any work, to write over what is there.
func (f trainFlags) checkFiles() error {
	if f.checkpoint != "" && !f.resume {
		if err := offline.CheckFree("--checkpoint", f.checkpoint, f.force); err != nil {
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
		if err := offline.CheckFree("-o", filepath.Join(f.out, name), f.force); err != nil {
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
	err = offline.ReplaceFile(f.checkpoint, true, func(temporary string) error { return os.WriteFile(temporary, b, 0o600) })
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
