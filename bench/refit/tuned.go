package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// tunedRows is the length of a stream of the tuned set.
const tunedRows = 5 * weekRows

// tunedRuns is how often each of its streams is drawn, with other seeds: one of each has half as many publications as
// it takes to tell 1 %.
const tunedRuns = 2

// tuned are the streams that the method and its defaults were chosen on.
func tuned(l *library) ([]recipe, error) {
	var out []recipe
	for run := range uint64(tunedRuns) {
		d, err := tunedDrifting(l, 1000*run)
		if err != nil {
			return nil, err
		}
		s, err := tunedStationary(l, 1000*run)
		if err != nil {
			return nil, err
		}
		out = append(append(out, d...), s...)
	}
	return out, nil
}

// tunedDrifting are 20 streams of real logits with their real labels: corrupted images that come suddenly, gradually,
// or again and again, one corruption after the other, and one net that replaces another.
func tunedDrifting(l *library, seed uint64) (out []recipe, err error) {
	j, err := l.get(jpeg, "resnet20", "resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3",
		"resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5")
	if err != nil {
		return nil, err
	}
	add := func(name string, s uint64, sources []*source, gradual bool, which func(r *rand.Rand, t float64) int) {
		m := mix{name, seed + s, tunedRows, gradual, sources, which}
		out = append(out, recipe{name, true, func() (*stream, error) { return m.streamOf(), nil }})
	}
	for i, bad := range j[1:] {
		pair, n := []*source{j[0], bad}, uint64(i)
		// Changes know nothing of days and weeks.
		phase := .13 + .15*float64(i)
		short := bad.name[len("resnet20_"):]
		add("sudden "+short, 10+n, pair, false, func(_ *rand.Rand, t float64) int { return step(t >= .3) })
		add("gradual "+short, 20+n, pair, true,
			func(r *rand.Rand, t float64) int { return step(r.Float64() < (t-.2)/.6) })
		add("recurring "+short, 30+n, pair, false, func(_ *rand.Rand, t float64) int { return int(t*5+phase) % 2 })
	}
	at := func(_ *rand.Rand, t float64) int { return int(3 * t) }
	add("clean, noise 1, noise 3", 40, []*source{j[0], j[1], j[2]}, false, at)
	add("clean, blur 3, blur 5", 41, []*source{j[0], j[4], j[5]}, false, at)
	good, err := l.get(nets, "resnet20", "mobilenetv2_x1_0", "vgg16_bn")
	if err != nil {
		return nil, err
	}
	for i, n := range good {
		add(fmt.Sprintf("%s, then the weak net", n.name), 50+uint64(i), []*source{n, j[0]}, false,
			func(_ *rand.Rand, t float64) int { return step(t >= .43) })
	}
	return out, nil
}

// tunedStationary are 20 streams of real logits whose labels are drawn from their recalibrated probabilities: half of
// them as calibrated as can be, the others as wrong as the net is.
func tunedStationary(l *library, seed uint64) (out []recipe, err error) {
	sources, err := l.get(nets)
	if err != nil {
		return nil, err
	}
	weak, err := l.get(weakNet, "test_logits")
	if err != nil {
		return nil, err
	}
	sources = append(sources[:len(sources):len(sources)], weak...)
	slices.SortFunc(sources, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	for i, src := range sources {
		out = append(out, still(src, seed+60+uint64(i), tunedRows, i%2 == 0))
	}
	return out, nil
}

func still(src *source, seed uint64, rows int, calibrated bool) recipe {
	return recipe{src.name, false, func() (*stream, error) { return resampled(src, seed, rows, calibrated) }}
}
