package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/training"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// trainFlags are the flags of `plumbline train`.
type trainFlags struct {
	array, labels string
	o             training.Options
	headArrays    string
	recipe        string
	split         trainSplitFlags
	set           trainSettings
}

func newTrainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train FILE[:array] [--head HEAD] [-o DIRECTORY]",
		Short: "Fine-tune a classifier's head on features and labels",
		Long:  help("train", recipeHelp()),
		Example: "  plumbline train monday.parquet --head head.safetensors -o new/\n" +
			"  plumbline train features.npz:shifted --labels y --head net.npz --recipe au --holdout 0.5 --json\n" +
			"  plumbline train monday.arrow --head head.safetensors --loss 'focal{gamma:2} + 0.5*savuc' --epochs 60 " +
			"--checkpoint run.ckpt",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runTrain(cmd, args[0], f) },
	}
	f.add(cmd)
	return cmd
}

func (f *trainFlags) add(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &f.o
	flags.StringVar(&f.array, "array", "", "features `array` of npz files, where FILE does not name it")
	flags.StringVar(&f.labels, "labels", "", "labels `array` of npz files")
	flags.StringVar(&o.Data.Head, "head", "", "the current head: a .safetensors or .npz `file`")
	flags.StringVar(&f.headArrays, "head-arrays", "W,b",
		"weight (K×D) and bias `arrays` of an .npz --head")
	flags.StringVar(&f.recipe, "recipe", recipe.Auto, "`name` of a recipe, or a .json file with its settings")
	flags.StringVar(&o.Backend, "backend", backends.Go, "go, cuda (falls back to go), or gorgonia in plumbline-train")
	flags.StringVar(&o.Precision, "precision", "",
		"products of cuda: fp32, tf32x3 or bf16 (default: the fastest with the losses of fp32)")
	flags.StringVar(&o.BLAS, "blas", "auto",
		"matrix products: auto (OpenBLAS if installed), openblas or gonum")
	flags.IntVar(&o.Threads, "threads", 0, "threads of OpenBLAS; 0: as many as Go uses")
	flags.BoolVar(&o.Temper, "temper", false,
		"divide the new head's logits by the best temperature of the validation rows, if it holds in all of them; "+
			"auto does")
	flags.IntVar(&o.MetricBins, "metric-bins", 15, "bins of the ECE")
	flags.StringVar(&o.Checkpoint, "checkpoint", "",
		"save to this `file` after every epoch, for --resume")
	flags.BoolVar(&o.Resume, "resume", false, "continue from the file of --checkpoint")
	flags.StringVarP(&o.Output, "output", "o", "",
		"write head.safetensors, head.onnx, report.json and curves.png to this `directory`")
	flags.BoolVar(&o.Unchanged, "write-unchanged", false, "write also where the current head is kept")
	flags.BoolVar(&o.Force, "force", false, "replace existing files")
	f.split.add(cmd)
	f.set.add(cmd)
}

func runTrain(cmd *cobra.Command, file string, f trainFlags) error {
	var err error
	if f.o.Plan, err = f.plan(cmd); err != nil {
		return err
	}
	if err := f.o.CheckFree(); err != nil {
		return err
	}
	if err := f.checkHead(); err != nil {
		return err
	}
	if err := f.setRows(); err != nil {
		return err
	}
	if f.o.Log, err = newLogger(cmd); err != nil {
		return err
	}
	f.o.Progress, f.o.Bound = cmd.ErrOrStderr(), heap.Bound
	r, err := f.o.Run(cmd.Context(), file)
	if err != nil {
		return err
	}
	return printReport(cmd, cmd.OutOrStdout(), r)
}

// checkHead refuses what cannot be a head.
func (f *trainFlags) checkHead() error {
	file := f.o.Data.Head
	weights, bias, two := strings.Cut(f.headArrays, ",")
	f.o.Arrays = [2]string{weights, bias}
	switch ext := filepath.Ext(file); {
	case file == "":
	case ext != ".safetensors" && ext != ".npz":
		return cli.Usagef("--head %s: allowed are files .safetensors and .npz", file)
	case ext == ".npz" && (!two || strings.Contains(bias, ",")):
		return cli.Usagef("--head-arrays %q: allowed are two names with a comma between", f.headArrays)
	}
	return nil
}

// setRows notes what the flags say about rows.
func (f *trainFlags) setRows() error {
	s, d := &f.split, &f.o.Data
	d.Array, d.Labels, d.HoldoutLabels, d.Seed = f.array, f.labels, s.holdoutLabels, f.set.Seed
	d.Random, d.Balance, d.MaxRows = s.order == "random", s.balance, s.maxRows
	d.Classes, d.Model, d.Version, d.Unknown = s.classes, s.model, s.version, s.unknown
	var err error
	if d.Validation, err = shareOrFile("--validation", s.validation); err != nil {
		return err
	}
	if d.Holdout, err = shareOrFile("--holdout", s.holdout); err != nil {
		return err
	}
	if d.Memory, err = parseBytes(s.memory); err != nil {
		return cli.Usagef("--memory %s: %v", s.memory, err)
	}
	return nil
}

// trainSplitFlags say which rows train, validate and are held out.
type trainSplitFlags struct {
	order               string
	validation, holdout string
	holdoutLabels       string
	unknown             string
	balance             float64
	maxRows, classes    int
	memory              string
	model, version      string
}

func (s *trainSplitFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.order, "split", "time",
		"divide rows by time (the newest validate) or random")
	flags.StringVar(&s.validation, "validation", "0.2",
		"share of the rows that validates, or a `file`")
	flags.StringVar(&s.holdout, "holdout", "",
		"score on this `file`, or on this share of FILE, such as 0.3, which nothing else sees")
	flags.StringVar(&s.unknown, "ood", "",
		"compare the confidence of held-out (else validation) rows with those of this `file`, of unknown classes")
	flags.StringVar(&s.holdoutLabels, "holdout-labels", "",
		"labels `array` of the npz files of --holdout and --validation; else that of --labels")
	flags.IntVar(&s.maxRows, "max-rows", 0, "most rows to train on, the newest; 0: all")
	flags.Float64Var(&s.balance, "balance", 0,
		"keep of a class at most this many times the training rows of the rarest; 0: all")
	flags.StringVar(&s.memory, "memory", "1GiB", "most features in memory, by `size`; larger sets stay in their files")
	flags.StringVar(&s.model, "model", "",
		"model, where FILE is a directory with several")
	flags.StringVar(&s.version, "version", "", "version of it")
	flags.IntVar(&s.classes, "classes", 0,
		"number of classes, without --head and logits; 0: highest label + 1")
}

// shareOrFile reads a share between 0 and 1, or else takes the text for a file.
func shareOrFile(flag, text string) (dataset.Part, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return dataset.Part{File: text}, nil
	}
	if !(v > 0 && v < 1) {
		return dataset.Part{}, cli.Usagef("%s %s: a share must be between 0 and 1", flag, text)
	}
	return dataset.Part{Share: v}, nil
}

func (s trainSplitFlags) check() error {
	validation, err := shareOrFile("--validation", s.validation)
	if err != nil {
		return err
	}
	switch {
	case s.order != "time" && s.order != "random":
		return cli.Usagef("--split %q: allowed are time and random", s.order)
	case s.validation == "":
		return cli.Usagef("--validation: a share or a file is needed")
	case validation.File != "" && (s.maxRows != 0 || s.balance != 0):
		return cli.Usagef("--validation %s: not with --max-rows or --balance", validation.File)
	case s.classes < 0 || s.classes == 1 || s.classes > dataset.MostClasses:
		return cli.Usagef("--classes %d: allowed are 0 and 2..%d", s.classes, dataset.MostClasses)
	}
	if err := (data.SplitConfig{MaxRows: s.maxRows, Balance: s.balance}).Validate(); err != nil {
		return cli.Usagef("--%s", strings.ReplaceAll(err.Error(), "_", "-")) // it begins with the key
	}
	return nil
}

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
