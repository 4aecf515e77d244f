package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline/plumbline/trainer/backends"
	"github.com/plumbline/plumbline/trainer/recipe"
)

// recipeHelp is a line for each recipe.
func recipeHelp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-16s %s\n", recipe.Auto, "ce at three rates and with more weight decay, au, maccal; a test on validation rows chooses")
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
	flags.StringVar(&s.Loss, "loss", "", "loss as `text`, such as 'ce + 0.5*sbece' (docs/train.md); alone, it is that of the recipe ce")
	flags.StringVar(&s.Head, "from", "", "train from this `head`: current, linear (fresh) or bottleneck (fresh)")
	flags.IntVar(&s.Width, "width", 0, "hidden units of a bottleneck; 0 is the number of features, at most 512")
	flags.IntVar(&s.Epochs, "epochs", 0, "passes over the training rows (recipes: 40)")
	flags.IntVar(&s.Batch, "batch", 0, "rows of a mini-batch (recipes: 128)")
	flags.Float64Var(&s.LR, "rate", 0, "learning rate at its highest (recipes: 0.03 to 0.3)")
	flags.StringVar(&s.Schedule.Kind, "schedule", "", "of the learning rate: constant, cosine or linear")
	flags.IntVar(&s.Schedule.Warmup, "warmup", 0, "epochs in which the rate rises")
	flags.Float64Var(&s.Momentum, "momentum", 0, "of stochastic gradient descent (recipes: 0.9)")
	flags.BoolVar(&s.Nesterov, "nesterov", false, "Nesterov's momentum")
	flags.Float64Var(&s.WeightDecay, "weight-decay", 0, "of all parameters (recipes: 5e-4)")
	flags.BoolVar(&s.Decoupled, "decoupled", false, "weight decay off the weights, not through the momentum")
	flags.Float64Var(&s.Mixup, "mixup", 0, "α of mixup of features, up to 1")
	flags.StringVar(&s.CDF, "cdf", "", "whose confidences the loss au counts: batch (each mini-batch's) or rows (the current head's on all training rows)")
	flags.IntVar(&s.Patience, "patience", 0, "stop after so many epochs without a lower validation NLL")
	flags.BoolVar(&s.KeepLast, "keep-last", false, "take the last epoch, not that of the lowest validation NLL")
	flags.BoolVar(&s.Tempered, "tempered", false, "compare epochs by the NLL after the best temperature")
	flags.StringVar(&s.interleave.Loss, "interleave", "", "second loss as `text`, trained on rows of its own after every epoch")
	flags.Float64Var(&s.interleave.Share, "interleave-share", 0, "share of the training rows for --interleave; 0 is 0.1")
	flags.Float64Var(&s.gamma, "gamma", 0, "target of confidence over accuracy of maccal (presets: 0.95)")
	flags.Uint64Var(&s.Seed, "seed", 0, "seed of weights, orders, masks, mixup and splits")
}

// overrides are the flags that change a recipe, and how.
var overrides = []struct {
	flag string
	one  bool // only where there is one recipe
	set  func(s *trainSettings, c *recipe.Config) error
}{
	{"loss", true, func(s *trainSettings, c *recipe.Config) error { c.Loss = s.Loss; return nil }},
	{"from", true, func(s *trainSettings, c *recipe.Config) error { c.Head = s.Head; return nil }},
	{"width", true, func(s *trainSettings, c *recipe.Config) error { c.Width = s.Width; return nil }},
	{"epochs", false, func(s *trainSettings, c *recipe.Config) error { c.Epochs = s.Epochs; return nil }},
	{"batch", false, func(s *trainSettings, c *recipe.Config) error { c.Batch = s.Batch; return nil }},
	{"rate", true, func(s *trainSettings, c *recipe.Config) error { c.LR = s.LR; return nil }},
	{"schedule", true, func(s *trainSettings, c *recipe.Config) error { c.Schedule.Kind = s.Schedule.Kind; return nil }},
	{"warmup", false, func(s *trainSettings, c *recipe.Config) error { c.Schedule.Warmup = s.Schedule.Warmup; return nil }},
	{"momentum", false, func(s *trainSettings, c *recipe.Config) error { c.Momentum = s.Momentum; return nil }},
	{"nesterov", false, func(s *trainSettings, c *recipe.Config) error { c.Nesterov = s.Nesterov; return nil }},
	{"weight-decay", true, func(s *trainSettings, c *recipe.Config) error { c.WeightDecay = s.WeightDecay; return nil }},
	{"decoupled", false, func(s *trainSettings, c *recipe.Config) error { c.Decoupled = s.Decoupled; return nil }},
	{"mixup", false, func(s *trainSettings, c *recipe.Config) error { c.Mixup = s.Mixup; return nil }},
	{"cdf", true, func(s *trainSettings, c *recipe.Config) error { c.CDF = s.CDF; return nil }},
	{"patience", false, func(s *trainSettings, c *recipe.Config) error { c.Patience = s.Patience; return nil }},
	{"keep-last", true, func(s *trainSettings, c *recipe.Config) error { c.KeepLast = s.KeepLast; return nil }},
	{"tempered", true, func(s *trainSettings, c *recipe.Config) error { c.Tempered = s.Tempered; return nil }},
	{"interleave", true, func(s *trainSettings, c *recipe.Config) error {
		c.Interleave = &recipe.Interleave{Loss: s.interleave.Loss}
		return nil
	}},
	{"interleave-share", true, func(s *trainSettings, c *recipe.Config) error {
		if c.Interleave == nil {
			return fmt.Errorf("--interleave-share %g: needs --interleave", s.interleave.Share)
		}
		c.Interleave.Share = s.interleave.Share
		return nil
	}},
	{"gamma", true, func(s *trainSettings, c *recipe.Config) error {
		if c.MaCCal == nil {
			return fmt.Errorf("--gamma %g: a setting of maccal, which is not asked for", s.gamma)
		}
		c.MaCCal.Gamma = s.gamma
		return nil
	}},
	{"seed", false, func(s *trainSettings, c *recipe.Config) error { c.Seed = s.Seed; return nil }},
}

// trainPlan is what to train: one recipe, or the candidates of auto.
type trainPlan struct {
	name    string
	recipes []recipe.Named
}

func (p trainPlan) auto() bool { return p.name == recipe.Auto }

func (p trainPlan) names() []string {
	var list []string
	for _, r := range p.recipes {
		list = append(list, r.Name)
	}
	return list
}

// plan is the recipe with what the flags change, checked.
func (f trainFlags) plan(cmd *cobra.Command) (trainPlan, error) {
	changed := cmd.Flags().Changed
	p, err := f.named(changed("loss") && !changed("recipe"))
	if err != nil {
		return p, err
	}
	for _, o := range overrides {
		if !changed(o.flag) {
			continue
		}
		if o.one && p.auto() {
			return p, usageErrorf("--%s: not with --recipe auto, which sets it by recipe", o.flag)
		}
		for i := range p.recipes {
			if err := o.set(&f.set, &p.recipes[i].Config); err != nil {
				return p, usageError{err}
			}
		}
	}
	for _, r := range p.recipes {
		if err := r.Config.Validate(); err != nil {
			return p, usageErrorf("--recipe %s: %w", p.name, err)
		}
		if r.Config.Head == recipe.HeadCurrent && f.head == "" {
			return p, usageErrorf("--recipe %s starts from the current head: --head FILE is needed, or --from linear with a single recipe", p.name)
		}
	}
	return p, f.checkChoices(p)
}

// checkChoices refuses flags that do not go together.
func (f trainFlags) checkChoices(p trainPlan) error {
	switch {
	case f.blas != "auto" && f.blas != "openblas" && f.blas != "gonum":
		return usageErrorf("--blas %q: allowed are auto, openblas and gonum", f.blas)
	case f.threads < 0:
		return usageErrorf("--threads %d: allowed are 0 and more", f.threads)
	case f.metricBins < 1:
		return usageErrorf("--metric-bins %d: must be positive", f.metricBins)
	case f.checkpoint != "" && p.auto():
		return usageErrorf("--checkpoint %s: not with --recipe auto, which is several trainings", f.checkpoint)
	case f.resume && f.checkpoint == "":
		return usageErrorf("--resume: needs --checkpoint")
	}
	if err := backends.Check(f.backend); err != nil {
		return usageErrorf("--backend %q: %w", f.backend, err)
	}
	return f.split.check()
}

func (f trainFlags) named(byLoss bool) (trainPlan, error) {
	if byLoss {
		return trainPlan{"ce", []recipe.Named{{Name: "ce", Config: recipe.CrossEntropy()}}}, nil
	}
	recipes, err := recipe.Lookup(f.recipe, f.set.Seed)
	if err != nil {
		return trainPlan{}, usageErrorf("--recipe %q: %w", f.recipe, err)
	}
	return trainPlan{f.recipe, recipes}, nil
}
