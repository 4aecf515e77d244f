package loss

import (
	"fmt"
	"math"
)

// Batch says what goes with a batch of logits.
type Batch struct {
	// N and K are the numbers of rows and classes, N ≥ 1 and K ≥ 2.
	N, K int
	// Y has the N labels, each in [0, K).
	Y []int32
	// Correct is the share of earlier epochs in which each row was classified correctly, in [0, 1]; only crl reads it.
	// Where it is nil, crl takes the batch's own hits.
	Correct []float64
	// CDF has the counts of the CSF in equal bins on [0, 1], those of a stream; only au reads it. Where it is nil, au
	// counts the batch.
	CDF []float64
}

// term is one summand of a loss.
type term interface {
	// add returns the value and, if grad (n×K) is not nil, adds scale times the gradient to it.
	add(r *rows, scale float64, grad []float64) float64
}

// rowLoss is a loss that is a mean over rows.
type rowLoss interface {
	// row returns the loss of row i and, if g is not nil, adds w times its gradient to g.
	row(r *rows, i int, w float64, g []float64) float64
}

// meanOf is the term 1/n Σ_i loss_i.
type meanOf struct{ rowLoss }

func (m meanOf) add(r *rows, scale float64, grad []float64) float64 {
	var sum float64
	w := scale / float64(r.n)
	for i := range r.n {
		sum += m.row(r, i, w, r.part(grad, i))
	}
	return sum / float64(r.n)
}

type weighted struct {
	weight float64
	term   term
}

// Loss is a sum of weighted terms: primary + β·secondary + …. It keeps its workspace, so a batch costs no allocation
// once one of its size has been seen, and it is not safe for concurrent use.
type Loss struct {
	text  string
	terms []weighted
	parts []float64
	rows  rows
	grad  []float64
}

// Name is the loss as text that [Parse] takes, with every option that was set.
func (l *Loss) Name() string { return l.text }

// Parts are the unweighted values of the terms at the last evaluation, in their order.
func (l *Loss) Parts() []float64 { return l.parts }

// Eval returns the loss of the n×K logits z and, if grad is not nil, overwrites it with the n×K gradient.
// An error names the row: a logit that is not finite, a label out of range; grad is then undefined.
func (l *Loss) Eval(z []float64, b Batch, grad []float64) (float64, error) {
	if err := load(&l.rows, z, b); err != nil {
		return 0, err
	}
	if grad == nil {
		return l.sum(nil), nil
	}
	if len(grad) != b.N*b.K {
		panic("loss: len(grad) != n*K")
	}
	clear(grad)
	return l.sum(grad), nil
}

// Eval32 is [Loss.Eval] of float32 logits: computed in float64, the gradient rounded once.
func (l *Loss) Eval32(z []float32, b Batch, grad []float32) (float64, error) {
	if err := load(&l.rows, z, b); err != nil {
		return 0, err
	}
	if grad == nil {
		return l.sum(nil), nil
	}
	if len(grad) != b.N*b.K {
		panic("loss: len(grad) != n*K")
	}
	l.grad = grow(l.grad, b.N*b.K)
	clear(l.grad)
	v := l.sum(l.grad)
	for i, g := range l.grad {
		grad[i] = float32(g)
	}
	return v, nil
}

func (l *Loss) sum(grad []float64) float64 {
	var v float64
	for i, t := range l.terms {
		l.parts[i] = t.term.add(&l.rows, t.weight, grad)
		v += t.weight * l.parts[i]
	}
	return v
}

// load checks a batch and computes what the terms share.
func load[T float32 | float64](r *rows, z []T, b Batch) error {
	if len(z) != b.N*b.K || len(b.Y) != b.N {
		panic("loss: len(z) != n*K or len(y) != n")
	}
	if b.N < 1 || b.K < 2 {
		return fmt.Errorf("loss: batch of %d rows and %d classes, allowed at least 1 and 2", b.N, b.K)
	}
	if b.Correct != nil && len(b.Correct) != b.N {
		panic("loss: len(correct) != n")
	}
	for i, y := range b.Y {
		if y < 0 || int(y) >= b.K {
			return fmt.Errorf("loss: row %d: label %d, allowed 0..%d", i, y, b.K-1)
		}
	}
	r.resize(b)
	if i := loadRows(r, z); i < b.N {
		return notFinite(i, z[i*b.K:(i+1)*b.K])
	}
	return checkCDF(b.CDF)
}

func notFinite[T float32 | float64](i int, row []T) error {
	for k, v := range row {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("loss: row %d, class %d: logit %v, allowed finite numbers", i, k, v)
		}
	}
	return fmt.Errorf("loss: row %d: logits differ by more than the largest number", i)
}

func checkCDF(h []float64) error {
	if h == nil {
		return nil
	}
	var n float64
	for k, v := range h {
		if !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("loss: CDF bin %d: count %v, allowed finite numbers from 0", k, v)
		}
		n += v
	}
	if !(n > 0) || math.IsInf(n, 0) {
		return fmt.Errorf("loss: CDF of %d bins with total count %v, allowed more than 0", len(h), n)
	}
	return nil
}
