package calibrator

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// scratched is a calibrator whose Apply needs memory of its own; ApplyRows gives it, once for all rows.
type scratched interface {
	// scratch is how many float64 it needs for rows of k.
	scratch(k int) int
	// applyScratch is Apply with that memory, apart from p and z, whose contents do not matter.
	applyScratch(p, z, scratch []float64)
}

// ApplyRows applies c to n rows of k scores, z row-major n×k, and writes the n×k calibrated probabilities to dst.
// With probs the scores are probabilities, which are taken as their logarithms, a zero as the smallest positive
// value of their type. dst and z may be one slice. It allocates the scratch of one row, and nothing a row.
//
// A row with a score that is NaN or infinite, and with probs a row that is no distribution (values in [0, 1] whose
// sum is within 0.05 of 1), comes out as NaN: it does not stop the others. Probabilities are those of Apply, rounded
// to D, which may tie two; for one temperature, float32 logits and a float32 dst they come from the block kernel, with
// its relative accuracy of 1e-6. It returns an error, and writes nothing, where the lengths do not fit or c is of
// another K.
func ApplyRows[D, T kernel.Float](c Calibrator, dst []D, z []T, k int, probs bool) error {
	switch {
	case k < 1:
		return fmt.Errorf("apply %s: %d classes, allowed are 1 and more", c.Method(), k)
	case len(z)%k != 0:
		return fmt.Errorf("apply %s: %d scores, allowed are whole rows of %d", c.Method(), len(z), k)
	case len(dst) < len(z):
		return fmt.Errorf("apply %s: room for %d probabilities, want %d", c.Method(), len(dst), len(z))
	}
	if !Fits(c, k) {
		return fmt.Errorf("apply %s: rows of %d classes, allowed are the %d that it was fitted on", c.Method(), k,
			ClassesOf(c))
	}
	if t, ok := oneTemperature(c); ok && !probs {
		to, narrow := any(dst).([]float32)
		if from, ok := any(z).([]float32); ok && narrow {
			temperRows(to, from, k, t)
			return nil
		}
	}
	p := make([]float64, k)
	apply := applier(c, k)
	for at := 0; at < len(z); at += k {
		if !load(p, z[at:at+k], probs) {
			fill(p, math.NaN())
		} else {
			apply(p, p)
		}
		for j, v := range p {
			dst[at+j] = D(v)
		}
	}
	return nil
}

// load writes a row's logits to p and reports whether the row is usable.
func load[T kernel.Float](p []float64, z []T, probs bool) bool {
	if probs {
		if _, ok := kernel.Probs(z, p); !ok {
			return false
		}
		for j, v := range z {
			p[j] = kernel.LogProb(v)
		}
		return true
	}
	bad := 0.0 // stays 0 for finite scores; NaN and infinities make it NaN
	for j, v := range z {
		p[j] = float64(v)
		bad += p[j] * 0
	}
	return bad == 0
}

// applier is c.Apply for rows of k, without allocation a call.
func applier(c Calibrator, k int) func(p, z []float64) {
	s, ok := c.(scratched)
	if !ok {
		return c.Apply
	}
	scratch := make([]float64, s.scratch(k))
	return func(p, z []float64) { s.applyScratch(p, z, scratch) }
}

// oneTemperature returns the T of a calibrator that is softmax(z/T).
func oneTemperature(c Calibrator) (float64, bool) {
	switch c := c.(type) {
	case Identity:
		return 1, true
	case Temperature:
		return c.t, c.t > 0
	}
	return 0, false
}

// blockScores is about how many scores go through the kernel at once: they stay in the cache.
const blockScores = 1 << 13

// temperRows writes softmax(z/t) of rows of k to dst, which may be z.
func temperRows(dst, z []float32, k int, t float64) {
	n := len(z) / k
	size := min(max(n, 1), max(1, blockScores/k))
	rows, e := make([]kernel.Row, size), make([]float32, size*k)
	for at := 0; at < n; at += size {
		m := min(size, n-at)
		kernel.LogitRows(rows[:m], e[:m*k], z[at*k:(at+m)*k], k, t)
		for i, r := range rows[:m] {
			scale := r.Scale
			if !r.OK {
				scale = math.NaN()
			}
			to := dst[(at+i)*k : (at+i+1)*k]
			for j, v := range e[i*k : (i+1)*k] {
				to[j] = float32(float64(v) * scale)
			}
		}
	}
}
