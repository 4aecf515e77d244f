package recipe

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Named is a recipe with a name. The others must beat the best of the recipes that are marked as Baseline; the first
// always counts as one.
type Named struct {
	Name     string `json:"name"`
	Config   Config `json:"config"`
	Baseline bool   `json:"baseline,omitempty"`
}

// Candidates are what [RunAuto] tries: cross-entropy at three rates, which are the baseline, with more decay, AU and
// MaC-Cal. Epochs are compared after a temperature, since the result has one.
func Candidates(seed uint64) []Named {
	at := func(lr, decay float64) Config {
		c := CrossEntropy()
		c.LR, c.WeightDecay = lr, decay
		return c
	}
	stable := MaCCalStable()
	stable.KeepLast = false
	decay := CrossEntropy().WeightDecay
	list := []Named{
		{"cross_entropy", CrossEntropy(), true},
		{"cross_entropy_slow", at(0.01, decay), true},
		{"cross_entropy_fast", at(0.3, decay), true},
		{"cross_entropy_decay", at(0.1, 3e-3), false},
		{"au", AU(), false},
		{"maccal", stable, false},
	}
	for i := range list {
		list[i].Config.Seed, list[i].Config.Tempered = seed, true
	}
	return list
}

// AutoReport says what was tried and why the one was taken.
type AutoReport struct {
	// Current is the current head with a temperature, where there is one.
	Current *AutoScore  `json:"current,omitempty"`
	Tried   []AutoScore `json:"tried"`
	// Baseline is the name of the recipe that the others were tested against, Chosen that of the one that was taken,
	// Temperature what its logits were divided by.
	Baseline    string  `json:"baseline"`
	Chosen      string  `json:"chosen"`
	Temperature float64 `json:"temperature"`
	// Level is that of each one-sided test: 0.05 over the number of candidates that challenge the baseline.
	Level float64 `json:"level"`
	// OverCurrent is the paired difference of NLL of the chosen head to the current one, both with a temperature.
	OverCurrent *Paired `json:"over_current,omitempty"`
}

// AutoScore is one head on the validation rows. NLL is that after a temperature fitted on the other half of the rows.
type AutoScore struct {
	Name        string  `json:"name"`
	NLL         float64 `json:"nll"`
	Accuracy    float64 `json:"accuracy"`
	Temperature float64 `json:"temperature"` // of all validation rows
	// Paired is the difference to the baseline, and Better whether that is below 0 by the test; neither is set for
	// recipes of the baseline.
	Paired Paired  `json:"paired"`
	Better bool    `json:"better"`
	Report *Report `json:"report,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Paired is the mean of differences by row, and its standard error.
type Paired struct {
	Mean float64 `json:"mean"`
	SE   float64 `json:"se"`
}

// autoLevel is the error rate of all tests together.
const autoLevel = 0.05

// scored is a head with its rows' NLLs.
type scored struct {
	AutoScore
	head *head.Head
	rows []float64
}

// RunAuto trains every candidate and adds a temperature to each. The baseline is the candidate of the lowest validation
// NLL of those that are marked so. Of the others it takes that of the lowest validation NLL among those that beat the
// baseline by a paired one-sided test at 5 %, corrected for their number; the baseline where none does, so that the
// result is not worse than that with a temperature, beyond noise. The temperature is in the weights of the head
// that is returned. A candidate that diverges is reported and left out; the first must not.
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
	best := r.choose(candidates, tried)
	if in.Current != nil {
		now, err := rate("current", in.Current, in.Valid)
		if err != nil {
			return nil, r, fmt.Errorf("auto: current head: %w", err)
		}
		p := paired(best.rows, now.rows)
		r.Current, r.OverCurrent = &now.AutoScore, &p
	}
	return best.head.Tempered(best.Temperature), r, nil
}

// choose finds the baseline, tests the others against it, and fills the report. The first was tried without error.
func (r *AutoReport) choose(candidates []Named, tried []*scored) *scored {
	base, challengers := tried[0], 0
	for i, s := range tried {
		if i > 0 && !candidates[i].Baseline {
			challengers++
		} else if s.Error == "" && s.NLL < base.NLL {
			base = s
		}
	}
	r.Level = autoLevel / max(1, float64(challengers))
	best := base
	for i, s := range tried {
		if i > 0 && !candidates[i].Baseline && s.Error == "" {
			s.Paired = paired(s.rows, base.rows)
			s.Better = s.Paired.below(r.Level)
			if s.Better && s.NLL < best.NLL {
				best = s
			}
		}
		r.Tried = append(r.Tried, s.AutoScore)
	}
	r.Baseline, r.Chosen, r.Temperature = base.Name, best.Name, best.Temperature
	return best
}

func tryOne(ctx context.Context, c Named, in Input, train Train) (*scored, error) {
	h, report, err := train(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := rate(c.Name, h, in.Valid)
	if err != nil {
		return nil, err
	}
	s.Report = &report
	return s, nil
}

// rate computes a head's NLLs by row, each under the temperature of the other half: rows of even and odd places, so
// that both halves are of all times.
func rate(name string, h *head.Head, valid *data.Set) (*scored, error) {
	n, k := valid.N(), h.K()
	if n < 2 {
		return nil, fmt.Errorf("%d validation rows, allowed at least 2", n)
	}
	z := logitsOf(h, valid)
	s := &scored{AutoScore: AutoScore{Name: name}, head: h, rows: make([]float64, n)}
	all, _, err := calibrator.FitTemperature(calibrator.NewData(z, k, valid.Y, nil), calibrator.Options{})
	if err != nil {
		return nil, err
	}
	s.Temperature = all.T()
	for half := range 2 {
		var fz []float32
		var fy []int32
		for i := 1 - half; i < n; i += 2 {
			fz, fy = append(fz, z[i*k:(i+1)*k]...), append(fy, valid.Y[i])
		}
		t, _, err := calibrator.FitTemperature(calibrator.NewData(fz, k, fy, nil), calibrator.Options{})
		if err != nil {
			return nil, err
		}
		for i := half; i < n; i += 2 {
			nll, hit := rowNLL(z[i*k:(i+1)*k], int(valid.Y[i]), t.T())
			s.rows[i] = nll
			s.NLL += nll / float64(n)
			if hit {
				s.Accuracy += 1 / float64(n)
			}
		}
	}
	return s, nil
}

// logitRows is how many rows logitsOf takes at a time.
const logitRows = 1024

// logitsOf are the n×K logits of a set.
func logitsOf(h *head.Head, s *data.Set) []float32 {
	pass, z := head.NewPass(h, logitRows, head.Gonum{}), make([]float32, 0, s.N()*h.K())
	var scratch []float32
	for from := 0; from < s.N(); from += logitRows {
		n := min(logitRows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		z = append(z, pass.Forward(h, scratch, n)...)
	}
	return z
}

// rowNLL is −ln softmax(z/t)_y, and whether y is the top class.
func rowNLL(z []float32, y int, t float64) (nll float64, hit bool) {
	top := 0
	for k, v := range z {
		if v > z[top] {
			top = k
		}
	}
	var rest float64
	for k, v := range z {
		if k != top {
			rest += math.Exp((float64(v) - float64(z[top])) / t)
		}
	}
	return math.Log1p(rest) + (float64(z[top])-float64(z[y]))/t, y == top
}

func paired(a, b []float64) Paired {
	n := float64(len(a))
	var p Paired
	for i := range a {
		p.Mean += (a[i] - b[i]) / n
	}
	var sum float64
	for i := range a {
		d := a[i] - b[i] - p.Mean
		sum += d * d
	}
	p.SE = math.Sqrt(sum / (n - 1) / n)
	return p
}

// below says whether the mean is below 0 by a one-sided normal test.
func (p Paired) below(level float64) bool {
	return p.Mean+distuv.UnitNormal.Quantile(1-level)*p.SE < 0
}
