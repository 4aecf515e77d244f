package recipe

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/head"
)

// Named is a recipe with a name. The others must beat the best of the recipes that are marked as Baseline; the first
// always counts as one.
type Named struct {
	Name     string `json:"name"`
	Config   Config `json:"config"`
	Baseline bool   `json:"baseline,omitempty"`
}

// Candidates are what [RunAuto] tries: cross-entropy at three rates, which are the baseline, with more decay, AU,
// MaC-Cal, and cross-entropy on a fresh bottleneck. Epochs are compared after a temperature.
func Candidates(seed uint64) []Named {
	at := func(lr, decay float64) Config {
		c := CrossEntropy()
		c.LR, c.WeightDecay = lr, decay
		return c
	}
	stable := MaCCalStable()
	stable.KeepLast = false
	decay := CrossEntropy().WeightDecay
	fresh := CrossEntropy()
	fresh.Head = HeadBottleneck
	list := []Named{
		{"cross_entropy", CrossEntropy(), true},
		{"cross_entropy_slow", at(0.01, decay), true},
		{"cross_entropy_fast", at(0.3, decay), true},
		{"cross_entropy_decay", at(0.1, 3e-3), false},
		{"au", AU(), false},
		{"maccal", stable, false},
		{"bottleneck", fresh, false},
	}
	for i := range list {
		list[i].Config.Seed, list[i].Config.Tempered = seed, true
	}
	return list
}

// AutoReport says what was tried and why the one was taken.
type AutoReport struct {
	// Current is the head that serves, as it is, where there is one.
	Current *AutoScore  `json:"current,omitempty"`
	Tried   []AutoScore `json:"tried"`
	// Changed is false where the head that serves is kept: no candidate was shown to be better.
	Changed bool `json:"changed"`
	// Baseline is the name of the recipe that the others were tested against, Chosen that of the one that was taken,
	// Temperature what its logits were divided by.
	Baseline    string  `json:"baseline"`
	Chosen      string  `json:"chosen"`
	Temperature float64 `json:"temperature"`
	// Blocks is how many blocks of time the validation rows were compared in.
	Blocks int `json:"blocks"`
	// Level is that of each one-sided test: 0.05 over the number of candidates that challenge the baseline.
	Level float64 `json:"level"`
	// OverCurrent is the paired difference of NLL of the best candidate to the head that serves, whether or not it was
	// taken.
	OverCurrent *Paired `json:"over_current,omitempty"`
}

// AutoScore is one head on the validation rows. NLL is the mean over blocks of time, each under a temperature that was
// fitted on the others, or as it is where a temperature was refused.
type AutoScore struct {
	Name        string  `json:"name"`
	NLL         float64 `json:"nll"`
	Accuracy    float64 `json:"accuracy"`
	Temperature float64 `json:"temperature"` // of all validation rows
	// Refused says why there is no temperature.
	Refused string `json:"temperature_refused,omitempty"`
	// Paired is the difference to the baseline, and Better whether that is below 0 by the test.
	Paired Paired `json:"paired"`
	Better bool   `json:"better"`
	// OverCurrent is the difference to the head that serves, where there is one. Spell says that the head is worse than
	// that one on the training rows that are asked too (askedRows), although it was trained on them: what it gains on
	// the validation rows is of their time or of their classes alone, and it is not taken.
	OverCurrent *Paired `json:"over_current,omitempty"`
	Spell       bool    `json:"spell,omitempty"`
	Report      *Report `json:"report,omitempty"`
	Error       string  `json:"error,omitempty"`
}

// autoLevel is the error rate of all tests together.
const autoLevel = 0.05

// CurrentName is what AutoReport.Chosen says where the head that serves is kept.
const CurrentName = "current"

// averageName is that of the mean of the linear heads.
const averageName = "average"

// RunAuto trains every candidate and adds a temperature to each, where one holds in all blocks of time. The baseline is
// the average of the linear heads that are as good as the best of them, or where there is none, the candidate of the
// lowest validation NLL of those that are marked so. Of the others it takes that of the lowest validation NLL among
// those that beat the baseline by a paired one-sided test at 5 %, corrected for their number; the baseline where none
// does. Where there is a head that serves, what is taken must beat it by the same test and must not be worse on the
// training rows that are asked too (askedRows), or it is kept. The temperature is in the weights of the head that is
// returned. A candidate that diverges is reported and left out; the first must not.
func RunAuto(ctx context.Context, candidates []Named, in Input, b backend.Backend) (*head.Head, AutoReport, error) {
	return RunAutoWith(ctx, candidates, in, func(ctx context.Context, c Named) (*head.Head, Report, error) {
		return Run(ctx, c.Config, in, b, nil)
	})
}

// Train runs the training of a candidate.
type Train func(ctx context.Context, c Named) (*head.Head, Report, error)

// RunAutoWith is RunAuto with a training of the caller's: one that goes on from checkpoints, or reports its progress.
// Candidates are trained in their order.
func RunAutoWith(
	ctx context.Context, candidates []Named, in Input, train Train,
) (*head.Head, AutoReport, error) {
	if len(candidates) == 0 {
		return nil, AutoReport{}, fmt.Errorf("auto: no candidates, allowed at least 1")
	}
	var r AutoReport
	now, err := r.current(in)
	if err != nil {
		return nil, r, err
	}
	tried := make([]*scored, len(candidates))
	for i, c := range candidates {
		s, err := tryOne(ctx, c, in, train)
		if ctx.Err() != nil {
			return nil, r, ctx.Err()
		}
		if err != nil && i == 0 {
			return nil, r, fmt.Errorf("auto: %s: %w", c.Name, err)
		}
		if tried[i] = s; err != nil {
			tried[i] = &scored{AutoScore: AutoScore{Name: c.Name, Error: err.Error()}}
		}
	}
	mean, err := average(tried, in)
	if err != nil {
		return nil, r, fmt.Errorf("auto: %w", err)
	}
	best := r.choose(candidates, tried, mean, now)
	if best == now {
		return in.Current.Clone(), r, nil
	}
	return best.head.Tempered(best.Temperature), r, nil
}

// current scores the head that serves, as it is; nil where there is none.
func (r *AutoReport) current(in Input) (*scored, error) {
	blocks, err := blocksOf(in.Valid)
	if err != nil {
		return nil, fmt.Errorf("auto: %w", err)
	}
	if r.Blocks = len(blocks.ends); in.Current == nil {
		return nil, nil
	}
	now := score(CurrentName, in.Current, in.Valid, blocks)
	now.asItIs()
	r.Current, now.trained = &now.AutoScore, meanNLL(in.Current, askedRows(in), 1)
	return now, nil
}

// choose finds the baseline, tests the others against it and what is best against the head that serves, and fills the
// report. The average, where there is one, is the baseline.
func (r *AutoReport) choose(candidates []Named, tried []*scored, mean, now *scored) *scored {
	base, challengers := baseline(candidates, tried, now)
	if mean != nil {
		if mean.against(now); mean.sound() {
			base = mean
		}
		tried = append(tried, mean)
	}
	r.Level = autoLevel / max(1, float64(challengers))
	best := base
	for _, s := range tried {
		if s.sound() && s != base && base != nil {
			s.Paired = paired(s.blocks, base.blocks)
			s.Better = s.Paired.below(r.Level)
		}
		if s.sound() && (best == nil || s.Better && s.NLL < best.NLL) {
			best = s
		}
		r.Tried = append(r.Tried, s.AutoScore)
	}
	if base != nil {
		r.Baseline = base.Name
	}
	if r.Changed = true; now != nil {
		if best != nil {
			r.OverCurrent = best.OverCurrent
		}
		if r.Changed = best != nil && best.OverCurrent.below(r.Level); !r.Changed {
			best = now
		}
	}
	r.Chosen, r.Temperature = best.Name, best.Temperature
	return best
}

// baseline compares what was tried with the head that serves. It returns the best of those that no test guards, the
// first and what is marked as a baseline, nil if none may be taken, and how many others there are.
func baseline(candidates []Named, tried []*scored, now *scored) (base *scored, challengers int) {
	for i, s := range tried {
		s.against(now)
		if i > 0 && !candidates[i].Baseline {
			challengers++
		} else if s.sound() && (base == nil || s.NLL < base.NLL) {
			base = s
		}
	}
	return base, challengers
}

// against compares a head with the one that serves, where there is one.
func (s *scored) against(now *scored) {
	if now == nil || s.Error != "" {
		return
	}
	p := paired(s.blocks, now.blocks)
	s.OverCurrent, s.Spell = &p, s.trained > now.trained
}

// sound says whether a head may be taken.
func (s *scored) sound() bool { return s.Error == "" && !s.Spell }

func tryOne(ctx context.Context, c Named, in Input, train Train) (*scored, error) {
	h, report, err := train(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := assess(c.Name, h, in)
	if err != nil {
		return nil, err
	}
	s.Report = &report
	return s, nil
}

// average is the head whose logits are the mean of those of the linear heads that validation rows cannot tell from the
// best of them: their weights' mean. Its NLL is at most the mean of theirs on any rows, so that it is near the best
// whichever that will be. nil: they tell all but one.
func average(tried []*scored, in Input) (*scored, error) {
	var best *scored
	for _, s := range tried {
		if s.linear() && (best == nil || s.NLL < best.NLL) {
			best = s
		}
	}
	var sum *head.Head
	n := 0
	for _, s := range tried {
		if !s.linear() || s != best && paired(best.blocks, s.blocks).below(autoLevel) {
			continue
		}
		n++
		if sum == nil {
			sum = s.head.Tempered(s.Temperature)
			continue
		}
		for i, p := range s.head.Tempered(s.Temperature).Params() {
			for j, v := range p {
				sum.Params()[i][j] += v
			}
		}
	}
	if n < 2 {
		return nil, nil
	}
	return assess(averageName, sum.Tempered(float64(n)), in)
}

func (s *scored) linear() bool { return s.Error == "" && len(s.head.Layers) == 1 }

// assess scores a head, with a temperature where one holds.
func assess(name string, h *head.Head, in Input) (*scored, error) {
	blocks, err := blocksOf(in.Valid)
	if err != nil {
		return nil, err
	}
	s := score(name, h, in.Valid, blocks)
	err = s.temper(in)
	s.trained = meanNLL(h, askedRows(in), s.Temperature)
	return s, err
}
