package offline

import (
	"math"

	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/internal/texttable"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Detection is how well the maximum probability tells rows of known classes from others.
type Detection struct {
	// AUROC is the probability that a known row has a higher one than an unknown row, FPR95 the share of unknown rows
	// above a threshold that 95 % of the known ones reach.
	AUROC float64 `json:"auroc"`
	FPR95 float64 `json:"fpr95"`
}

// Unknown is the detection of the rows of a file by the new head, and by the current one if there is one.
type Unknown struct {
	Rows   int        `json:"rows"`
	Before *Detection `json:"before,omitempty"`
	After  Detection  `json:"after"`
}

// ScoreUnknown compares known rows with unknown ones, whose labels are not used. current may be nil.
func ScoreUnknown(current, trained *head.Head, known, unknown *data.Set, gemm head.GEMM) *Unknown {
	u := &Unknown{Rows: unknown.N(), After: detect(trained, known, unknown, gemm)}
	if current != nil {
		before := detect(current, known, unknown, gemm)
		u.Before = &before
	}
	return u
}

func detect(h *head.Head, known, unknown *data.Set, gemm head.GEMM) Detection {
	var top []float64
	var is []bool
	for _, s := range []*data.Set{known, unknown} {
		z, k := logits(h, s, gemm), h.K()
		for i := range s.N() {
			top, is = append(top, maxProbability(z[i*k:(i+1)*k])), append(is, s == known)
		}
	}
	sorted := metric.SortWeighted(top, is, nil)
	return Detection{AUROC: metric.AUROC(sorted), FPR95: metric.FPR95(sorted)}
}

// maxProbability is that of a row of logits.
func maxProbability(z []float32) float64 {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(float64(v) - float64(top))
	}
	return 1 / sum
}

// Lines is a table's part.
func (u *Unknown) Lines() [][]string {
	line := func(name string, f func(Detection) float64) []string {
		before := "-"
		if u.Before != nil {
			before = texttable.Short(f(*u.Before))
		}
		return []string{name, before, texttable.Short(f(u.After))}
	}
	return [][]string{
		line("auroc, unknown rows", func(d Detection) float64 { return d.AUROC }),
		line("fpr95, unknown rows", func(d Detection) float64 { return d.FPR95 }),
	}
}
