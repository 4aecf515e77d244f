package offline

import (
	"math"

	"github.com/plumbline/plumbline/calib/compare"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// HeadScores are the scores of the new head, and of the current head if there is one, on the same rows.
type HeadScores struct {
	Before     *metric.Report      `json:"before,omitempty"`
	After      metric.Report       `json:"after"`
	Difference *compare.Difference `json:"nll_difference,omitempty"` // after minus before
}

// logitChunk is the number of rows that logits computes at a time.
const logitChunk = 1024

// logits returns the n×K logits of a set.
func logits(h *head.Head, s *data.Set, gemm head.GEMM) []float32 {
	pass, z := head.NewPass(h, logitChunk, gemm), make([]float32, 0, s.N()*h.K())
	var scratch []float32
	for from := 0; from < s.N(); from += logitChunk {
		n := min(logitChunk, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		z = append(z, pass.Forward(h, scratch, n)...)
	}
	return z
}

// scoreHead returns the metrics of a head on rows, and the NLL of each row.
func scoreHead(h *head.Head, s *data.Set, gemm head.GEMM, opt metric.Options) (metric.Report, []float64, error) {
	z := logits(h, s, gemm)
	r, err := metric.Evaluate(metric.Rows{K: h.K(), F32: z, Labels: s.Y}, opt)
	nll := make([]float64, s.N())
	for i := range nll {
		row := z[i*s.K : (i+1)*s.K]
		top := row[0]
		for _, v := range row {
			top = max(top, v)
		}
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v) - float64(top))
		}
		nll[i] = math.Log(sum) + float64(top) - float64(row[s.Y[i]])
	}
	return r, nll, err
}

// ScoreHeads scores the current head, which may be nil, and the new head on the rows of a set.
func ScoreHeads(current, trained *head.Head, s *data.Set, gemm head.GEMM, opt metric.Options) (HeadScores, error) {
	after, rows, err := scoreHead(trained, s, gemm, opt)
	if err != nil || current == nil {
		return HeadScores{After: after}, err
	}
	before, old, err := scoreHead(current, s, gemm, opt)
	diff := compare.Paired(rows, old, nil)
	return HeadScores{&before, after, &diff}, err
}
