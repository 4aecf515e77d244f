package batchtest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Second in event time.
const Second = int64(1e9)

// Start is the event time of the first row: 2026-01-31T00:00:00Z, the edge of a day and of every window tested.
const Start = int64(1769817600) * Second

// Options say what rows to make. Zero values mean the defaults.
type Options struct {
	N          int
	K          int     // default 4
	Start      int64   // default Start
	Step       int64   // time between predictions, ns; default 100 ms
	MaxLag     int64   // label time minus prediction time is uniform in [0, MaxLag]; default 30 s
	Unlabelled float64 // share of predictions that never get a label
	// Sharpness multiplies the logits that the labels are drawn from: 1 (the default) is calibrated, 2 overconfident.
	Sharpness float64
	Versions  []string // of model "m"; default "v1"
	Model     string   // default "m"
	Regions   int      // values of the slice column "region"; 0 = no column
	Probs     bool     // rows carry probabilities
	Weights   bool
	Served    bool
}

func (o *Options) setDefaults() {
	if o.K == 0 {
		o.K = 4
	}
	if o.Start == 0 {
		o.Start = Start
	}
	if o.Step == 0 {
		o.Step = Second / 10
	}
	if o.MaxLag == 0 {
		o.MaxLag = 30 * Second
	}
	if o.Sharpness == 0 {
		o.Sharpness = 1
	}
	if len(o.Versions) == 0 {
		o.Versions = []string{"v1"}
	}
	if o.Model == "" {
		o.Model = "m"
	}
}

// Row is a prediction and what is to become known of it.
type Row struct {
	ID             string
	Model, Version string
	Region         string // "" = the column is absent
	TS, LabelTS    int64
	Label          int32 // -1 = never known
	Scores         []float32
	Probs          bool
	Weight, Served float32   // NaN = absent
	Features       []float32 // nil = the column is absent
}

// Rows makes rows in order of TS. Labels are drawn from softmax(z) of the row's true logits z; the scores are
// Sharpness·z, or their softmax.
func Rows(seed uint64, o Options) []Row {
	o.setDefaults()
	r := rand.New(rand.NewPCG(seed, 1))
	rows := make([]Row, o.N)
	for i := range rows {
		z := make([]float64, o.K)
		for k := range z {
			z[k] = r.NormFloat64() * 2
		}
		row := Row{ID: fmt.Sprintf("%d-%d", seed, i), Model: o.Model, Version: o.Versions[r.IntN(len(o.Versions))],
			TS: o.Start + int64(i)*o.Step, Label: draw(r, softmax(z)), Probs: o.Probs,
			Weight: float32(math.NaN()), Served: float32(math.NaN())}
		row.LabelTS = row.TS + r.Int64N(o.MaxLag+1)
		if r.Float64() < o.Unlabelled {
			row.Label = -1
		}
		if o.Regions > 0 {
			row.Region = fmt.Sprintf("r%d", r.IntN(o.Regions))
		}
		for k := range z {
			z[k] *= o.Sharpness
		}
		if o.Probs {
			z = softmax(z)
		}
		for _, x := range z {
			row.Scores = append(row.Scores, float32(x))
		}
		if o.Weights {
			row.Weight = 0.5 + r.Float32()
		}
		if o.Served && i%2 == 0 {
			row.Served = r.Float32()
		}
		rows[i] = row
	}
	return rows
}

func softmax(z []float64) []float64 {
	m, sum := slices.Max(z), 0.0
	p := make([]float64, len(z))
	for k, x := range z {
		p[k] = math.Exp(x - m)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

func draw(r *rand.Rand, p []float64) int32 {
	u := r.Float64()
	for k, q := range p {
		if u -= q; u < 0 {
			return int32(k)
		}
	}
	return int32(len(p) - 1)
}

// ByLabelTime returns the labelled rows in the order in which their labels become known.
func ByLabelTime(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if r.Label >= 0 {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int { return cmp.Compare(a.LabelTS, b.LabelTS) })
	return out
}
