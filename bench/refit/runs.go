package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// inRuns are streams whose rows depend on those before them: nothing ever changes for good, but classes or domains come
// in runs that last from tens of rows to days. What is better in one run is worse in the next, and the rows of a
// validation tell less than their number says.
func inRuns(l *library) ([]recipe, error) {
	h := &held{l: l, rows: tunedRows}
	j := h.get(jpeg, "resnet20", "resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3",
		"resnet20_gauss_blur_s3")
	n := h.get(nets, "mobilenetv2_x0_5", "resnet20")
	if h.err != nil {
		return nil, h.err
	}
	// Vehicles (0, 1, 8, 9) or animals: two classes, of which one comes in runs.
	kinds := [][]int32{{0, 1, 8, 9}, {2, 3, 4, 5, 6, 7}}
	noise, blur, contrast := j[2].merged(kinds), j[4].merged(kinds), j[3].merged(kinds)
	for i, run := range []float64{40, 150, 500, 1500, 4000} {
		seed := 3000 + uint64(i)
		h.addMix(fmt.Sprintf("two classes in runs of %g", run), seed, noise.each(), true, switching(.8, run))
		h.addMix(fmt.Sprintf("two classes that wander in %g rows", run), seed+10, blur.each(), true,
			wandering(2, run, 1))
		h.addMix(fmt.Sprintf("ten classes that wander in %g rows", run), seed+20, n[i%2].each(), true,
			wandering(10, run, 1))
	}
	for i, run := range []float64{150, 600, 2000} {
		h.addMix(fmt.Sprintf("domains in runs of %g", run), 3030+uint64(i), j, true, atRandom(len(j), run))
	}
	h.addMix("two classes by the time of day", 3041, contrast.each(), true, always(func(r *rand.Rand, t float64) int {
		return step(r.Float64() < .5+.35*math.Sin(2*math.Pi*t*tunedRows/dayRows))
	}))
	h.addMix("two classes in waves of three days", 3042, noise.each(), true, always(func(r *rand.Rand, t float64) int {
		return step(r.Float64() < .5+.35*math.Sin(2*math.Pi*t*tunedRows/(3.1*dayRows)))
	}))
	return h.out, h.err
}

// merged has one class for each group of classes: its score is the logarithm of their sum.
func (s *source) merged(groups [][]int32) *source {
	out := &source{name: s.name, k: len(groups)}
	group := make([]int32, s.k)
	for g, classes := range groups {
		for _, c := range classes {
			group[c] = int32(g)
		}
	}
	sum := make([]float64, len(groups))
	for i, y := range s.labels {
		clear(sum)
		for c, z := range s.z[i*s.k : (i+1)*s.k] {
			sum[group[c]] += math.Exp(float64(z))
		}
		for _, x := range sum {
			out.z = append(out.z, float32(math.Log(x)))
		}
		out.labels = append(out.labels, group[y])
	}
	return out
}

// each has a source for each class.
func (s *source) each() (out []*source) {
	for c := range int32(s.k) {
		out = append(out, s.of(c))
	}
	return out
}

// switching gives one of two classes most of the rows, p of them, for so many rows on average, and then the other one.
func switching(p, rows float64) func() chooser {
	return func() chooser {
		now := 0
		return func(r *rand.Rand, _ float64) int {
			if r.Float64() < 1/rows {
				now = 1 - now
			}
			return now ^ step(r.Float64() >= p)
		}
	}
}

// wandering draws classes in proportion to exp(u_c), where each u_c is an autoregression that forgets in so many rows
// and has that standard deviation.
func wandering(k int, rows, sd float64) func() chooser {
	return func() chooser {
		u := make([]float64, k)
		a := math.Exp(-1 / rows)
		return func(r *rand.Rand, _ float64) int {
			sum := 0.0
			for c := range u {
				u[c] = a*u[c] + sd*math.Sqrt(1-a*a)*r.NormFloat64()
				sum += math.Exp(u[c])
			}
			left := r.Float64() * sum
			for c := range u {
				if left -= math.Exp(u[c]); left < 0 {
					return c
				}
			}
			return k - 1
		}
	}
}
