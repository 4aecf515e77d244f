package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/progress"
	"github.com/plumbline/plumbline/internal/texttable"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/blas"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// Plan is what to train: one recipe, or the candidates of auto.
type Plan struct {
	Name    string
	Recipes []recipe.Named
}

// Auto reports whether the best of several recipes is wanted.
func (p Plan) Auto() bool { return p.Name == recipe.Auto }

func (p Plan) names() []string {
	var list []string
	for _, r := range p.Recipes {
		list = append(list, r.Name)
	}
	return list
}

// Options are what the flags say.
type Options struct {
	Plan   Plan
	Data   dataset.Options // Data.Head is the file of the current head; "": there is none
	Arrays [2]string       // weights and bias of the current head, where its file is an .npz

	Backend    string
	Precision  string // of cuda's products
	BLAS       string // auto, openblas or gonum
	Threads    int    // of OpenBLAS; 0: as many as Go uses
	Checkpoint string // file that is written after every epoch; "": none
	Resume     bool   // go on from it
	Temper     bool   // divide the new head's logits by the best temperature of the validation rows
	MetricBins int
	Output     string // directory for head, curves and report; "": nothing is written
	Unchanged  bool   // write also where the current head is kept
	Force      bool   // replace files that are there

	Log      *slog.Logger
	Progress io.Writer                     // a terminal gets bars
	Bound    func(*data.Set) (undo func()) // is told the training rows
}

// CheckFree refuses, before any work, to write over what is there.
func (o *Options) CheckFree() error {
	if o.Checkpoint != "" && !o.Resume {
		if err := offline.CheckFree("--checkpoint", o.Checkpoint, o.Force); err != nil {
			return fmt.Errorf("%w, --resume goes on from it", err)
		}
	}
	if o.Output == "" {
		return nil
	}
	st, err := os.Stat(o.Output)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("-o: %w", err)
	case !st.IsDir():
		return fmt.Errorf("-o %s: not a directory", o.Output)
	}
	for _, name := range outputs {
		if err := offline.CheckFree("-o", filepath.Join(o.Output, name), o.Force); err != nil {
			return err
		}
	}
	return nil
}

// Run reads, trains, scores and writes.
func (o *Options) Run(ctx context.Context, file string) (*Result, error) {
	current, err := o.currentHead()
	if err != nil {
		return nil, err
	}
	d, err := o.Data.Read(file, current)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	defer o.Bound(d.Train)()
	b, gemm, err := o.device()
	if err != nil {
		return nil, err
	}
	r := &Result{File: file, D: d.Train.D, K: d.Train.K, Rows: d.Rows, Recipe: o.Plan.Name, Backend: b.Name(),
		BLAS: blasName(gemm), Output: o.Output}
	start := time.Now()
	in := recipe.Input{Train: d.Train, Valid: d.Valid, Current: current, Mixed: o.Data.Mixed()}
	trained, err := o.train(ctx, in, b, r)
	if errors.Is(err, context.Canceled) {
		err = o.interrupted()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, d.Because(err))
	}
	r.Seconds = time.Since(start).Seconds()
	if err := r.score(o, d, gemm, heads{current, trained}); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if o.Output == "" {
		return r, nil
	}
	if !r.Changed && !o.Unchanged {
		r.Output = ""
		return r, nil
	}
	return r, r.write(o)
}

// currentHead reads --head; nil where there is none.
func (o *Options) currentHead() (*head.Head, error) {
	if o.Data.Head == "" {
		return nil, nil
	}
	h, err := dataset.ReadHead(o.Data.Head, o.Arrays[0], o.Arrays[1])
	if err != nil {
		return nil, fmt.Errorf("--head %s: %w", o.Data.Head, err)
	}
	return h, nil
}

func (o *Options) interrupted() error {
	if o.Checkpoint == "" {
		return offline.ErrInterrupted
	}
	return fmt.Errorf("interrupted: --resume goes on from --checkpoint %s", o.Checkpoint)
}

// device is what trains, and what multiplies matrices for it.
func (o *Options) device() (backend.Backend, head.GEMM, error) {
	var gemm head.GEMM = head.Gonum{}
	if o.BLAS != "gonum" {
		if _, err := blas.Load(); err != nil && o.BLAS == "openblas" {
			return nil, nil, fmt.Errorf("--blas openblas: %w", err)
		}
		gemm = blas.Best(o.Log, o.Threads)
	}
	b, err := backends.New(o.Backend, backends.Options{GEMM: gemm, Precision: o.Precision, Log: o.Log})
	return b, gemm, err
}

func blasName(g head.GEMM) string {
	if lib, ok := g.(*blas.OpenBLAS); ok {
		return "openblas: " + lib.Config()
	}
	return "gonum"
}

// train runs the recipe, or the candidates of auto, and notes the report.
func (o *Options) train(ctx context.Context, in recipe.Input, b backend.Backend, r *Result) (*head.Head, error) {
	if o.Plan.Auto() {
		bar := progress.Steps(o.Progress, 1, "train "+strings.Join(o.Plan.names(), ", "))
		defer bar.Finish()
		h, report, err := recipe.RunAuto(ctx, o.Plan.Recipes, in, b)
		if err != nil {
			return nil, err
		}
		r.Auto, r.Changed = &report, report.Changed
		r.Temperature, r.Tempered = report.Temperature, report.Temperature != 1
		return h, nil
	}
	t, err := recipe.New(o.Plan.Recipes[0].Config, in, b)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if o.Resume {
		if err := o.restore(t); err != nil {
			return nil, err
		}
	}
	if err := o.epochs(ctx, t); err != nil {
		return nil, err
	}
	report := t.Summary()
	r.Training, r.Changed = &report, report.Best > 0 || report.Config.Head != recipe.HeadCurrent
	return t.Head(), nil
}

// epochs trains to the end, with a checkpoint after every epoch.
func (o *Options) epochs(ctx context.Context, t *recipe.Training) error {
	what := "train " + o.Plan.Name
	bar := progress.New(o.Progress, int64(o.Plan.Recipes[0].Config.Epochs), what, "epochs")
	defer bar.Finish()
	bar.Add(int64(len(t.Summary().Epochs)))
	for !t.Done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.Step(); err != nil {
			return err
		}
		epochs := t.Summary().Epochs
		valid := epochs[len(epochs)-1].Valid
		bar.Say(fmt.Sprintf("%s: NLL %s, accuracy %s", what, texttable.Short(valid.NLL),
			texttable.Short(valid.Accuracy)))
		bar.Add(1)
		if err := o.save(t); err != nil {
			return err
		}
	}
	return nil
}

// save writes the checkpoint, whole or not at all.
func (o *Options) save(t *recipe.Training) error {
	if o.Checkpoint == "" {
		return nil
	}
	b, err := t.Checkpoint()
	if err != nil {
		return err
	}
	const always = true // it is ours since CheckFree
	err = offline.ReplaceFile(o.Checkpoint, always, func(temporary string) error {
		return os.WriteFile(temporary, b, 0o600)
	})
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	return nil
}

func (o *Options) restore(t *recipe.Training) error {
	b, err := os.ReadFile(o.Checkpoint)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if err := t.Restore(b); err != nil {
		return fmt.Errorf("--resume from %s: %w", o.Checkpoint, err)
	}
	return nil
}
