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

// Named is a recipe with a name.
type Named struct {
	Name   string `json:"name"`
	Config Config `json:"config"`
}

// Candidates are what [RunAuto] tries: the first is the baseline that the others must beat.
func Candidates(seed uint64) []Named {
	decayed := CrossEntropy()
	decayed.WeightDecay = 3e-3
	stable := MaCCalStable()
	stable.KeepLast = false
	list := []Named{{"cross_entropy", CrossEntropy()}, {"cross_entropy_decay", decayed}, {"au", AU()}, {"maccal", stable}}
	for i := range list {
		list[i].Config.Seed = seed
	}
	return list
}

// AutoReport says what was tried and why the one was taken.
type AutoReport struct {
	// Current is the current head with a temperature, where there is one.
	Current *AutoScore  `json:"current,omitempty"`
	Tried   []AutoScore `json:"tried"`
	// Chosen is the name of the recipe, Temperature what its logits were divided by.
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
	// Paired is the difference to the baseline, and Better whether that is below 0 by the test.
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

// RunAuto trains every candidate, adds a temperature to each, and takes the one of the lowest validation NLL among those
// that beat the first by a paired one-sided test at 5 %, corrected for their number; the first where none does, so that the
// result is not worse than the first with a temperature, beyond noise. The temperature is in the weights of the head
// that is returned. A candidate that diverges is reported and left out; the first must not.
func RunAuto(ctx context.Context, candidates []Named, in Input, b backend.Backend) (*head.Head, AutoReport, error) {
	if len(candidates) == 0 {
		return nil, AutoReport{}, fmt.Errorf("auto: no candidates, allowed at least 1")
	}
	r := AutoReport{Level: autoLevel / max(1, float64(len(candidates)-1))}
	var base, best *scored
	for i, c := range candidates {
		s, err := tryOne(ctx, c, in, b)
		if ctx.Err() != nil {
			return nil, r, ctx.Err()
		}
		if err != nil {
			if i == 0 {
				return nil, r, fmt.Errorf("auto: %s: %w", c.Name, err)
			}
			r.Tried = append(r.Tried, AutoScore{Name: c.Name, Error: err.Error()})
			continue
		}
		if base == nil {
			base, best = s, s
		} else {
			s.Paired = paired(s.rows, base.rows)
			s.Better = s.Paired.below(r.Level)
			if s.Better && s.NLL < best.NLL {
				best = s
			}
		}
		r.Tried = append(r.Tried, s.AutoScore)
	}
	r.Chosen, r.Temperature = best.Name, best.Temperature
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

func tryOne(ctx context.Context, c Named, in Input, b backend.Backend) (*scored, error) {
	h, report, err := Run(ctx, c.Config, in, b, nil)
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

// rate computes a head's NLLs by row, each under the temperature of the other half: rows of even and odd places, so that
// both halves are of all times.
func rate(name string, h *head.Head, valid *data.Set) (*scored, error) {
	n, k := valid.N(), h.K()
	if n < 2 {
		return nil, fmt.Errorf("%d validation rows, allowed at least 2", n)
	}
	z := logitsOf(h, valid)
	s := &scored{AutoScore: AutoScore{Name: name}, head: h, rows: make([]float64, n)}
	all, _, err := calibrator.FitTemperature(z, k, valid.Y, nil, calibrator.Options{})
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
		t, _, err := calibrator.FitTemperature(fz, k, fy, nil, calibrator.Options{})
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
