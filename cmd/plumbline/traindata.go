package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/dataset"
)

// trainSplitFlags say which rows train, validate and are held out.
type trainSplitFlags struct {
	order               string
	validation, holdout string
	holdoutLabels       string
	balance             float64
	maxRows, classes    int
	memory              string
	model, version      string
}

func (s *trainSplitFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.order, "split", "time", "rows are divided by time (the newest validate and are held out) or random")
	flags.StringVar(&s.validation, "validation", "0.2", "share of the rows that validates, after those held out, or a `file`")
	flags.StringVar(&s.holdout, "holdout", "", "score on the rows of this `file`, or on this share of FILE, such as 0.3, which nothing else sees")
	flags.StringVar(&s.holdoutLabels, "holdout-labels", "", "labels `array` of the npz files of --holdout and --validation; else that of --labels")
	flags.IntVar(&s.maxRows, "max-rows", 0, "train on so many rows at most, the newest; 0 is all")
	flags.Float64Var(&s.balance, "balance", 0, "keep of a class at most so many times the training rows of the rarest; 0 keeps all")
	flags.StringVar(&s.memory, "memory", defaultMemory, "features of at most this `size` are held in memory; more stay in their files and are read as the training goes")
	flags.StringVar(&s.model, "model", "", "model whose rows are taken, where FILE is a directory with those of several")
	flags.StringVar(&s.version, "version", "", "version of it")
	flags.IntVar(&s.classes, "classes", 0, "number of classes, where neither --head nor logits say it; 0 is the highest label and one")
}

// shareOrFile reads a share between 0 and 1, or else takes the text for a file.
func shareOrFile(flag, text string) (share float64, file string, err error) {
	v, perr := strconv.ParseFloat(text, 64)
	if perr != nil {
		return 0, text, nil
	}
	if !(v > 0 && v < 1) {
		return 0, "", usageErrorf("%s %s: a share must be between 0 and 1", flag, text)
	}
	return v, "", nil
}

// options are what the flags say about rows, checked before.
func (f trainFlags) options() (dataset.Options, error) {
	s := f.split
	o := dataset.Options{Array: f.array, Labels: f.labels, HoldoutLabels: s.holdoutLabels, Random: s.order == "random", Balance: s.balance,
		MaxRows: s.maxRows, Classes: s.classes, Model: s.model, Version: s.version, Seed: f.set.Seed, Head: f.head}
	var err error
	if o.Validation.Share, o.Validation.File, err = shareOrFile("--validation", s.validation); err != nil {
		return o, err
	}
	if o.Holdout.Share, o.Holdout.File, err = shareOrFile("--holdout", s.holdout); err != nil {
		return o, err
	}
	o.Memory, err = parseBytes(s.memory)
	return o, err
}

func (s trainSplitFlags) check() error {
	_, file, err := shareOrFile("--validation", s.validation)
	if err != nil {
		return err
	}
	if _, _, err := shareOrFile("--holdout", s.holdout); err != nil {
		return err
	}
	switch {
	case s.order != "time" && s.order != "random":
		return usageErrorf("--split %q: allowed are time and random", s.order)
	case s.validation == "":
		return usageErrorf("--validation: a share or a file is needed")
	case file != "" && (s.maxRows != 0 || s.balance != 0):
		return usageErrorf("--validation %s: not with --max-rows or --balance", file)
	case s.classes < 0 || s.classes == 1:
		return usageErrorf("--classes %d: allowed are 0 and from 2", s.classes)
	}
	if _, err := parseBytes(s.memory); err != nil {
		return usageErrorf("--memory %s: %v", s.memory, err)
	}
	if err := (data.SplitConfig{MaxRows: s.maxRows, Balance: s.balance}).Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// defaultMemory is --memory where it is not given.
const defaultMemory = "1GiB"

// parseBytes reads a size such as 1500000, 64MiB or 1.5GiB.
func parseBytes(text string) (int64, error) {
	digits, unit := text, 1.
	for suffix, u := range map[string]float64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if d, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = d, u
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(v >= 0 && v*unit <= 1<<50) {
		return 0, fmt.Errorf("allowed are bytes, with or without KiB, MiB, GiB or TiB")
	}
	return int64(v * unit), nil
}
