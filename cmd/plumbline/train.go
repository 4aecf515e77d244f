package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/heap"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// trainFlags are the flags of `plumbline train`.
type trainFlags struct {
	inputFlags
	head, headArrays           string
	recipe, backend, blas, out string
	checkpoint                 string
	resume, force, temper      bool
	threads, metricBins        int
	split                      trainSplitFlags
	set                        trainSettings
}

func newTrainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train FILE[:array] [--head HEAD] [-o DIRECTORY]",
		Short: "Fine-tune a classifier's head on features and labels",
		Long: "Train fine-tunes the last layer of a classifier on the features and labels of FILE (Arrow, Parquet, CSV: columns features,\n" +
			"label and, for the split by time, ts; npz: an array that FILE:array or --array names) and writes it with -o as safetensors\n" +
			"and ONNX, with a report and its curves. The head that serves now, --head, is what most recipes start from, and what the new\n" +
			"one is compared with. Epochs and recipes are chosen on validation rows; --holdout scores rows that no choice has used.\n" +
			"docs/train.md describes it.\n\nRecipes:\n" + recipeHelp(),
		Example: "  plumbline train monday.parquet --head head.safetensors -o new/\n" +
			"  plumbline train features.npz:shifted --labels y --head net.npz --recipe au --holdout 0.5 --json\n" +
			"  plumbline train monday.arrow --head head.safetensors --loss 'focal{gamma:2} + 0.5*savuc' --epochs 60 --checkpoint run.ckpt",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return runTrain(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.array, "array", "", "features `array` of npz files, where FILE does not name it")
	flags.StringVar(&f.labels, "labels", "", "labels `array` of npz files")
	flags.StringVar(&f.head, "head", "", "the current head: a .safetensors `file`, or an .npz with its arrays")
	flags.StringVar(&f.headArrays, "head-arrays", "W,b", "weight (K×D) and bias `arrays` of --head, where that is an .npz")
	flags.StringVar(&f.recipe, "recipe", recipe.Auto, "`name` of a recipe, or a .json file with its settings")
	flags.StringVar(&f.backend, "backend", backends.Go, "what trains: go, cuda, which falls back to go where there is no device, or gorgonia in plumbline-train")
	flags.StringVar(&f.blas, "blas", "auto", "matrix products: auto (OpenBLAS where it is installed), openblas or gonum")
	flags.IntVar(&f.threads, "threads", 0, "threads of OpenBLAS; 0 is as many as Go uses")
	flags.BoolVar(&f.temper, "temper", false, "divide the logits of the new head by the best temperature of the validation rows; auto always does")
	flags.IntVar(&f.metricBins, "metric-bins", 15, "bins of the ECE")
	flags.StringVar(&f.checkpoint, "checkpoint", "", "write everything that --resume needs to this `file` after every epoch")
	flags.BoolVar(&f.resume, "resume", false, "go on from the file of --checkpoint, with the same bits")
	flags.StringVarP(&f.out, "output", "o", "", "write head.safetensors, head.onnx, report.json and curves.png to this `directory`")
	flags.BoolVar(&f.force, "force", false, "replace files of -o and --checkpoint that are there")
	f.split.add(cmd)
	f.set.add(cmd)
	return cmd
}

// runTrain reads, trains, scores, writes.
func runTrain(cmd *cobra.Command, file string, f trainFlags) error {
	plan, err := f.plan(cmd)
	if err != nil {
		return err
	}
	if err := f.checkFiles(); err != nil {
		return err
	}
	current, err := f.currentHead()
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	d, err := o.Read(file, current)
	if err != nil {
		return err
	}
	defer d.Close()
	defer heap.Bound(d.Train)()
	b, gemm, err := f.chooseBackend(cmd)
	if err != nil {
		return err
	}
	r := &trainResult{File: file, D: d.Train.D, K: d.Train.K, Rows: d.Rows, Recipe: plan.name, Backend: b.Name(), BLAS: blasName(gemm), Output: f.out}
	start := time.Now()
	trained, err := f.train(cmd, plan, recipe.Input{Train: d.Train, Valid: d.Valid, Current: current}, b, r)
	if errors.Is(err, context.Canceled) {
		err = f.interrupted()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, d.Because(err))
	}
	r.Seconds = time.Since(start).Seconds()
	if err := r.score(f, d, gemm, current, trained); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if f.out != "" {
		if err := r.write(f); err != nil {
			return err
		}
	}
	return r.print(cmd.OutOrStdout(), jsonOutput(cmd))
}

func (f trainFlags) interrupted() error {
	if f.checkpoint == "" {
		return offline.ErrInterrupted
	}
	return fmt.Errorf("interrupted: --resume goes on from --checkpoint %s", f.checkpoint)
}

func (f trainFlags) chooseBackend(cmd *cobra.Command) (backend.Backend, head.GEMM, error) {
	log, err := newLogger(cmd)
	if err != nil {
		return nil, nil, err
	}
	var gemm head.GEMM = head.Gonum{}
	if f.blas != "gonum" {
		if _, err := blas.Load(); err != nil && f.blas == "openblas" {
			return nil, nil, fmt.Errorf("--blas openblas: %w", err)
		}
		gemm = blas.Best(log, f.threads)
	}
	b, err := backends.New(f.backend, backends.Options{GEMM: gemm, Log: log})
	return b, gemm, err
}

func blasName(g head.GEMM) string {
	if lib, ok := g.(*blas.OpenBLAS); ok {
		return "openblas: " + lib.Config()
	}
	return "gonum"
}

// train runs the recipe, or the candidates of auto, and notes the report. The head is tempered where that is asked for.
func (f trainFlags) train(cmd *cobra.Command, plan trainPlan, in recipe.Input, b backend.Backend, r *trainResult) (*head.Head, error) {
	if plan.auto() {
		bar := newSteps(cmd.ErrOrStderr(), 1, "train "+strings.Join(plan.names(), ", "))
		defer bar.finish()
		h, report, err := recipe.RunAuto(cmd.Context(), plan.recipes, in, b)
		if err != nil {
			return nil, err
		}
		r.Auto, r.Temperature, r.Tempered = &report, report.Temperature, true
		return h, nil
	}
	t, err := recipe.New(plan.recipes[0].Config, in, b)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if f.resume {
		if err := f.restore(t); err != nil {
			return nil, err
		}
	}
	if err := f.epochs(cmd, t, plan); err != nil {
		return nil, err
	}
	report := t.Report()
	r.Training = &report
	return t.Head(), nil
}

// epochs trains to the end, with a checkpoint after every epoch.
func (f trainFlags) epochs(cmd *cobra.Command, t *recipe.Training, plan trainPlan) error {
	cfg := plan.recipes[0].Config
	bar := newProgress(cmd.ErrOrStderr(), int64(cfg.Epochs), "train "+plan.name, "epochs")
	defer bar.finish()
	bar.add(int64(len(t.Report().Epochs)))
	for !t.Done() {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if err := t.Step(); err != nil {
			return err
		}
		epochs := t.Report().Epochs
		last := epochs[len(epochs)-1]
		bar.say(fmt.Sprintf("train %s: NLL %s, accuracy %s", plan.name, formatShort(last.Valid.NLL), formatShort(last.Valid.Accuracy)))
		bar.add(1)
		if err := f.save(t); err != nil {
			return err
		}
	}
	return nil
}
