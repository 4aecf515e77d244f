package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/offline"
	"github.com/plumbline/plumbline/internal/training"
	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// recipeHelp is a line for each recipe.
func recipeHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-16s %s\n", recipe.Auto,
		"ce at three rates and with more weight decay, au, maccal, bottleneck; a test on validation rows chooses")
	for _, r := range recipe.Presets {
		fmt.Fprintf(&b, "  %-16s %s\n", r.Name, r.Title)
	}
	return strings.TrimRight(b.String(), "\n")
}

// trainSettings override those of a recipe where their flags are given.
type trainSettings struct {
	recipe.Config
	interleave recipe.Interleave
	gamma      float64
}

func (s *trainSettings) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Loss, "loss", "",
		"loss as `text`, such as 'ce + 0.5*sbece' (docs/train.md), for the recipe ce")
	flags.StringVar(&s.Head, "from", "", "train from this `head`: current, linear (fresh) or bottleneck (fresh)")
	flags.IntVar(&s.Width, "width", 0, "hidden units of a bottleneck; 0: the number of features, at most 512")
	flags.IntVar(&s.Epochs, "epochs", 0, "passes over the training rows (recipes: 40)")
	flags.IntVar(&s.Batch, "batch", 0, "rows of a mini-batch (recipes: 128)")
	flags.Float64Var(&s.LR, "rate", 0, "learning rate at its highest (recipes: 0.03 to 0.3)")
	flags.StringVar(&s.Schedule.Kind, "schedule", "", "of the learning rate: constant, cosine or linear")
	flags.IntVar(&s.Schedule.Warmup, "warmup", 0, "epochs in which the rate rises")
	flags.Float64Var(&s.Momentum, "momentum", 0, "of stochastic gradient descent (recipes: 0.9)")
	flags.BoolVar(&s.Nesterov, "nesterov", false, "Nesterov's momentum")
	flags.Float64Var(&s.WeightDecay, "weight-decay", 0, "of all parameters (recipes: 5e-4)")
	flags.BoolVar(&s.Decoupled, "decoupled", false, "decay weights directly, not through the momentum")
	flags.Float64Var(&s.Mixup, "mixup", 0, "α of mixup of features, up to 1")
	flags.StringVar(&s.CDF, "cdf", "", "whose confidences the loss au counts: batch (each mini-batch's) or rows "+
		"(the current head's on all training rows)")
	flags.IntVar(&s.Patience, "patience", 0, "stop after this many epochs without a lower validation NLL")
	flags.BoolVar(&s.KeepLast, "keep-last", false, "take the last epoch, not the one of lowest validation NLL")
	flags.BoolVar(&s.Tempered, "tempered", false, "compare epochs by the NLL after the best temperature")
	flags.StringVar(&s.interleave.Loss, "interleave", "",
		"second loss as `text`, trained on rows of its own after every epoch")
	flags.Float64Var(&s.interleave.Share, "interleave-share", 0,
		"share of the training rows for --interleave; 0 is 0.1")
	flags.Float64Var(&s.gamma, "gamma", 0, "target of confidence over accuracy of maccal (presets: 0.95)")
	flags.Uint64Var(&s.Seed, "seed", 0, "seed of weights, orders, masks, mixup and splits")
}

// override is a flag that changes a recipe.
type override struct {
	flag string
	one  bool // only where there is one recipe
	set  func(s *trainSettings, c *recipe.Config) error
}

// copied is an override that copies a field.
func copied[T any](flag string, one bool, field func(*recipe.Config) *T) override {
	return override{flag, one, func(s *trainSettings, c *recipe.Config) error {
		*field(c) = *field(&s.Config)
		return nil
	}}
}

// overrides are in the order in which they are applied.
var overrides = []override{
	copied("loss", true, func(c *recipe.Config) *string { return &c.Loss }),
	copied("from", true, func(c *recipe.Config) *string { return &c.Head }),
	{"width", true, setWidth},
	copied("epochs", false, func(c *recipe.Config) *int { return &c.Epochs }),
	copied("batch", false, func(c *recipe.Config) *int { return &c.Batch }),
	copied("rate", true, func(c *recipe.Config) *float64 { return &c.LR }),
	copied("schedule", true, func(c *recipe.Config) *string { return &c.Schedule.Kind }),
	copied("warmup", false, func(c *recipe.Config) *int { return &c.Schedule.Warmup }),
	copied("momentum", false, func(c *recipe.Config) *float64 { return &c.Momentum }),
	copied("nesterov", false, func(c *recipe.Config) *bool { return &c.Nesterov }),
	copied("weight-decay", true, func(c *recipe.Config) *float64 { return &c.WeightDecay }),
	copied("decoupled", false, func(c *recipe.Config) *bool { return &c.Decoupled }),
	copied("mixup", false, func(c *recipe.Config) *float64 { return &c.Mixup }),
	copied("cdf", true, func(c *recipe.Config) *string { return &c.CDF }),
	copied("patience", false, func(c *recipe.Config) *int { return &c.Patience }),
	copied("keep-last", true, func(c *recipe.Config) *bool { return &c.KeepLast }),
	copied("tempered", true, func(c *recipe.Config) *bool { return &c.Tempered }),
	{"interleave", true, setInterleave},
	{"interleave-share", true, setInterleaveShare},
	{"gamma", true, setGamma},
	copied("seed", false, func(c *recipe.Config) *uint64 { return &c.Seed }),
}

func setWidth(s *trainSettings, c *recipe.Config) error {
	if c.Head != recipe.HeadBottleneck {
		return fmt.Errorf("--width %d: a setting of a bottleneck, which is not asked for", s.Width)
	}
	c.Width = s.Width
	return nil
}

func setInterleave(s *trainSettings, c *recipe.Config) error {
	c.Interleave = &recipe.Interleave{Loss: s.interleave.Loss}
	return nil
}

func setInterleaveShare(s *trainSettings, c *recipe.Config) error {
	if c.Interleave == nil {
		return fmt.Errorf("--interleave-share %g: needs --interleave", s.interleave.Share)
	}
	c.Interleave.Share = s.interleave.Share
	return nil
}

func setGamma(s *trainSettings, c *recipe.Config) error {
	if c.MaCCal == nil {
		return fmt.Errorf("--gamma %g: a setting of maccal, which is not asked for", s.gamma)
	}
	c.MaCCal.Gamma = s.gamma
	return nil
}

// plan is the recipe with what the flags change, checked.
func (f *trainFlags) plan(cmd *cobra.Command) (training.Plan, error) {
	changed := cmd.Flags().Changed
	p, err := f.named(changed("loss") && !changed("recipe"))
	if err != nil {
		return p, err
	}
	for _, o := range overrides {
		if !changed(o.flag) {
			continue
		}
		if o.one && p.Auto() {
			return p, cli.Usagef("--%s: not with --recipe auto, which sets it by recipe", o.flag)
		}
		for i := range p.Recipes {
			c := &p.Recipes[i].Config
			if err := o.set(&f.set, c); err != nil {
				return p, cli.UsageError{Err: err}
			}
			if err := c.Validate(); err != nil { // right before: it is this flag
				return p, cli.Usagef("--%s: %w", o.flag, err)
			}
		}
	}
	for _, r := range p.Recipes {
		if r.Config.Head == recipe.HeadCurrent && f.o.Data.Head == "" {
			return p, cli.Usagef("--recipe %s starts from the current head: --head FILE is needed, "+
				"or --from linear with a single recipe", p.Name)
		}
	}
	return p, f.checkChoices(p)
}

// checkChoices refuses flags that do not go together.
func (f *trainFlags) checkChoices(p training.Plan) error {
	switch {
	case f.o.BLAS != "auto" && f.o.BLAS != "openblas" && f.o.BLAS != "gonum":
		return cli.Usagef("--blas %q: allowed are auto, openblas and gonum", f.o.BLAS)
	case f.o.Threads < 0:
		return cli.Usagef("--threads %d: allowed are 0 and more", f.o.Threads)
	case offline.WrongBins(f.o.MetricBins) != "":
		return cli.Usagef("--metric-bins %d: %s", f.o.MetricBins, offline.WrongBins(f.o.MetricBins))
	case f.o.Checkpoint != "" && p.Auto():
		return cli.Usagef("--checkpoint %s: not with --recipe auto, which is several trainings", f.o.Checkpoint)
	case f.o.Resume && f.o.Checkpoint == "":
		return cli.Usagef("--resume: needs --checkpoint")
	}
	if err := backends.Check(f.o.Backend); err != nil {
		return cli.Usagef("--backend %q: %w", f.o.Backend, err)
	}
	if err := backends.CheckPrecision(f.o.Backend, f.o.Precision); err != nil {
		return cli.Usagef("--%w", err) // it begins with the name of the flag
	}
	return f.split.check()
}

func (f *trainFlags) named(byLoss bool) (training.Plan, error) {
	if byLoss {
		return training.Plan{Name: "ce", Recipes: []recipe.Named{{Name: "ce", Config: recipe.CrossEntropy()}}}, nil
	}
	recipes, err := recipe.Lookup(f.recipe, f.set.Seed)
	if err != nil {
		return training.Plan{}, cli.Usagef("--recipe %q: %w", f.recipe, err)
	}
	return training.Plan{Name: f.recipe, Recipes: recipes}, nil
}
