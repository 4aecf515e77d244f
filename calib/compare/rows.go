package compare

import (
	"math"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// Select copies the rows with the given indices.
func Select(r metric.Rows, at []int) metric.Rows {
	out := metric.Rows{K: r.K, Probs: r.Probs, Labels: make([]int32, len(at))}
	for i, row := range at {
		out.Labels[i] = r.Labels[row]
	}
	if r.W != nil {
		out.W = make([]float64, len(at))
		for i, row := range at {
			out.W[i] = r.W[row]
		}
	}
	if r.F64 != nil {
		out.F64 = selectScores(r.F64, r.K, at)
	} else {
		out.F32 = selectScores(r.F32, r.K, at)
	}
	return out
}

func selectScores[T kernel.Float](scores []T, k int, at []int) []T {
	out := make([]T, 0, len(at)*k)
	for _, row := range at {
		out = append(out, scores[row*k:(row+1)*k]...)
	}
	return out
}

// Labelled returns the indices of the rows that have a label.
func Labelled(labels []int32) []int {
	var out []int
	for i, y := range labels {
		if y >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// Fit runs calibrator.Fit on rows that all have a label.
func Fit(method string, r metric.Rows, opt calibrator.Options) (c calibrator.Calibrator, report calibrator.Report,
	err error) {
	opt.Probs = r.Probs
	if r.F64 != nil {
		c, report, err = calibrator.Fit(method, calibrator.NewData(r.F64, r.K, r.Labels, r.W), opt)
	} else {
		c, report, err = calibrator.Fit(method, calibrator.NewData(r.F32, r.K, r.Labels, r.W), opt)
	}
	if err == nil && r.Probs && OfLogits(c, r.K) {
		report.Warnings = append(report.Warnings, "fitted on probabilities: it is wrong for logits")
	}
	return c, report, err
}

// OfLogits reports whether c makes something else of logits than of the probabilities that they stand for. A number
// added to all logits of a row leaves these as they are; most calibrators do not see it.
func OfLogits(c calibrator.Calibrator, k int) bool {
	z, moved := make([]float64, k), make([]float64, k)
	for i := range z {
		z[i] = math.Sin(float64(i + 1)) // any row
		moved[i] = z[i] + 1
	}
	c.Apply(z, z)
	c.Apply(moved, moved)
	const rounding = 1e-9
	for i := range z {
		if math.Abs(z[i]-moved[i]) > rounding {
			return true
		}
	}
	return false
}

// Scores are n×K logits, or probabilities.
type Scores[T kernel.Float] struct {
	Z     []T
	K     int
	Probs bool
}

// chunkScores is roughly how many scores Apply gives a worker at once.
const chunkScores = 1 << 18

// Apply writes the probabilities of scores to dst with calibrator.ApplyRows, on all processors. If done is not nil, it
// is called with the number of rows that have become ready, one call at a time. dst and the scores may be one slice.
func Apply[D, T kernel.Float](c calibrator.Calibrator, dst []D, s Scores[T], done func(rows int)) error {
	z, k := s.Z, s.K
	chunk := max(chunkScores/max(k, 1), 1) * max(k, 1)
	if len(z) <= chunk {
		return calibrator.ApplyRows(c, dst, z, k, s.Probs)
	}
	var (
		mu    sync.Mutex
		next  int
		first error
		group sync.WaitGroup
	)
	take := func() (from, to int) {
		mu.Lock()
		defer mu.Unlock()
		if first != nil {
			return len(z), len(z)
		}
		from, to = next, min(next+chunk, len(z))
		next = to
		return from, to
	}
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for from, to := take(); from < to; from, to = take() {
				err := calibrator.ApplyRows(c, dst[from:to], z[from:to], k, s.Probs)
				mu.Lock()
				if first == nil {
					first = err
				}
				if done != nil {
					done((to - from) / k)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return first
}

// Calibrate returns the rows calibrated by c: probabilities in float64, with the same labels and weights.
func Calibrate(c calibrator.Calibrator, r metric.Rows) (metric.Rows, error) {
	out := metric.Rows{K: r.K, Probs: true, Labels: r.Labels, W: r.W}
	out.F64 = make([]float64, max(len(r.F32), len(r.F64)))
	var err error
	if r.F64 != nil {
		err = Apply(c, out.F64, Scores[float64]{r.F64, r.K, r.Probs}, nil)
	} else {
		err = Apply(c, out.F64, Scores[float32]{r.F32, r.K, r.Probs}, nil)
	}
	return out, err
}
