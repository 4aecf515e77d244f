package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// heldRows is the length of a held-out stream, but for those in real time, which are as long as they are.
const heldRows = 7 * weekRows

// heldOut are streams that nothing was chosen on: of other nets, data sets, orders and kinds of change than those of
// tuned, with other seeds. Those that are drawn are drawn as often as the tuned ones; what happened in real time
// happened once.
func heldOut(l *library) ([]recipe, error) {
	h := &held{l: l, rows: heldRows}
	for run := range uint64(tunedRuns) {
		h.seed = 10_000 * run
		h.corrupted()
		h.exchanged()
		h.shares()
		h.faults()
		if run == 0 {
			h.realTime()
		}
		h.stationary()
	}
	return h.out, h.err
}

// held gathers recipes; after an error nothing more.
type held struct {
	l    *library
	rows int    // of a stream
	seed uint64 // added to every stream's
	out  []recipe
	err  error
}

// get returns sources of a file under names of their own, where there are any.
func (h *held) get(file string, names ...string) []*source {
	s, err := h.l.get(file, names...)
	if h.err == nil {
		h.err = err
	}
	if err != nil {
		return make([]*source, len(names))
	}
	return s
}

func (h *held) one(file, name, shown string) *source {
	s := h.get(file, name)[0]
	if s == nil {
		return nil
	}
	return &source{shown, s.z, s.k, s.labels}
}

type chooser = func(r *rand.Rand, t float64) int

func (h *held) addMix(name string, seed uint64, sources []*source, gradual bool, which func() chooser) {
	if h.err != nil {
		return
	}
	seed += h.seed
	h.out = append(h.out, recipe{name, true, func() (*stream, error) {
		m := mix{name, seed, h.rows, gradual, sources, which()}
		return m.streamOf(), nil
	}})
}

func always(which chooser) func() chooser { return func() chooser { return which } }

// parts takes one source after the other, in that order, in parts of equal length.
func parts(order ...int) func() chooser {
	return always(func(_ *rand.Rand, t float64) int { return order[min(int(t*float64(len(order))), len(order)-1)] })
}

// gradually replaces the first source by the second between two shares of the stream.
func gradually(from, to float64) func() chooser {
	return always(func(r *rand.Rand, t float64) int { return step(r.Float64() < (t-from)/(to-from)) })
}

// atRandom stays with a source for so many rows on average, and then goes to any other.
func atRandom(n int, rows float64) func() chooser {
	return func() chooser {
		now := 0
		return func(r *rand.Rand, _ float64) int {
			if r.Float64() < 1/rows {
				now = (now + 1 + r.IntN(n-1)) % n
			}
			return now
		}
	}
}

// corrupted images, in other orders than the tuned ones, and of another net.
func (h *held) corrupted() {
	s := h.get(jpeg, "resnet20", "resnet20_gauss_noise_s1", "resnet20_gauss_noise_s3", "resnet20_contrast_s3",
		"resnet20_gauss_blur_s3", "resnet20_gauss_blur_s5")
	other := h.get(jpeg, "resnet56")[0]
	h.addMix("any corruption at random, 12000 rows each", 2001, s, false, atRandom(len(s), 12_000))
	h.addMix("any corruption at random, 5000 rows each", 2002, s, false, atRandom(len(s), 5000))
	h.addMix("noise 3 that goes away", 2003, []*source{s[2], s[0]}, true, gradually(.1, .9))
	h.addMix("blur 3, blur 5, blur 3, clean", 2004, s, false, parts(4, 5, 4, 0))
	h.addMix("contrast, noise 1, blur 5, noise 3, clean", 2005, s, false, parts(3, 1, 5, 2, 0))
	h.addMix("waves of noise 1", 2006, []*source{s[0], s[1]}, true, always(func(r *rand.Rand, t float64) int {
		return step(r.Float64() < (1-math.Cos(2*math.Pi*3*t))/2)
	}))
	h.addMix("resnet56 and resnet20 on noise 1 by turns", 2007, []*source{other, s[1]}, false,
		parts(0, 1, 0, 1, 0, 1, 0))
}

// exchanged nets.
func (h *held) exchanged() {
	c := h.get(nets100, "resnet56", "vgg16_bn")
	wide := h.one(wide100, "test_probs", "wide")
	h.addMix("100 classes: resnet56, then vgg16", 2011, c, false, parts(0, 0, 1, 1, 1))
	h.addMix("100 classes: vgg16, and ever more of the wide net", 2012, []*source{c[1], wide}, true, gradually(.2, .7))
	h.addMix("100 classes: three nets by turns", 2013, []*source{c[0], c[1], wide}, false, parts(0, 1, 2, 0, 2, 1))
	n := h.get(nets, "vgg19_bn", "shufflenetv2_x0_5", "repvgg_a0")
	h.addMix("vgg19, shufflenet, repvgg", 2014, n, false, parts(0, 1, 2))
	h.addMix("repvgg, and ever more of the weak net", 2015, []*source{n[2], h.one(weakNet, "test_logits", "weak")},
		true,
		gradually(.3, .6))
}

// shares of the classes that change: sources are the rows of some classes.
func (h *held) shares() {
	wide, weak, c := h.one(wide10, "test_probs", "wide"), h.one(weakNet, "test_logits", "weak"), h.one(nets100,
		"vgg16_bn", "vgg16_bn")
	if h.err != nil {
		return
	}
	h.addMix("three classes of ten take over", 2021, []*source{wide, wide.of(3, 4, 5)}, false,
		always(func(r *rand.Rand, t float64) int {
			return step(t >= .35 && r.Float64() < .7)
		}))
	h.addMix("half of the classes by turns", 2022, []*source{weak.of(0, 1, 2, 3, 4), weak.of(5, 6, 7, 8, 9)}, false,
		parts(0, 1, 0, 1, 0))
	h.addMix("100 classes: from the first half to the second", 2023,
		[]*source{c.of(span(0, 50)...), c.of(span(50, 100)...)}, true, gradually(0, 1))
}

func span(from, to int) (out []int32) {
	for c := from; c < to; c++ {
		out = append(out, int32(c))
	}
	return out
}

// of are the rows of some classes.
func (s *source) of(classes ...int32) *source {
	out := &source{name: s.name, k: s.k}
	for i, y := range s.labels {
		if slices.Contains(classes, y) {
			out.z = append(out.z, s.z[i*s.k:(i+1)*s.k]...)
			out.labels = append(out.labels, y)
		}
	}
	return out
}

// faults of what surrounds a model: labels that are wrong, scores that are scaled.
func (h *held) faults() {
	digits, wide := h.one(mnist, "train_logits", "digits"), h.one(wide10, "test_probs", "wide")
	if h.err != nil {
		return
	}
	h.addMix("digits, and ever more wrong labels", 2031, []*source{digits, digits.shuffled(h.seed + 2032)}, true,
		always(func(r *rand.Rand, t float64) int {
			return step(r.Float64() < .2*t)
		}))
	h.addMix("scores doubled for a while", 2033, []*source{wide, wide.times(2)}, false, parts(0, 0, 0, 1, 1, 1, 0, 0))
}

// shuffled has labels of other rows.
func (s *source) shuffled(seed uint64) *source {
	out := &source{s.name, s.z, s.k, slices.Clone(s.labels)}
	rand.New(rand.NewPCG(seed, 4)).Shuffle(len(out.labels),
		func(i, j int) { out.labels[i], out.labels[j] = out.labels[j], out.labels[i] })
	return out
}

func (s *source) times(x float32) *source {
	out := &source{s.name, slices.Clone(s.z), s.k, s.labels}
	for i := range out.z {
		out.z[i] *= x
	}
	return out
}

// realTime are rows in the order in which they came: heads that never learn again, and dated forecasts. The gas sensors
// are shorter than a week.
func (h *held) realTime() {
	for _, f := range []struct{ file, name, shown string }{{insects, "insects_gradual_bal", "INSECTS in time"},
		{elec2, "elec2", "elec2 in time"}, {forecasts, "games", "forecasts in time"}} {
		s := h.one(f.file, f.name, f.shown)
		if h.err != nil {
			return
		}
		h.out = append(h.out, recipe{f.shown, true, func() (*stream, error) {
			return &stream{name: f.shown, drifting: true, k: s.k, z: s.z, labels: s.labels}, nil
		}})
	}
}

// stationary are 20 streams as those of tunedStationary, of other sources.
func (h *held) stationary() {
	for i, f := range []struct{ file, name, shown string }{
		{nets100, "resnet56", "100 classes: resnet56"}, {nets100, "vgg16_bn", "100 classes: vgg16"}, {wide100,
			"test_probs", "100 classes: wide"},
		{wide10, "test_probs", "wide"}, {mnist, "test_logits", "digits"}, {mnist, "train_logits",
			"digits of the training"},
		{jpeg, "resnet20", "jpeg resnet20"}, {jpeg, "resnet56", "jpeg resnet56"}, {jpeg, "resnet20_gauss_noise_s1",
			"noise 1"}, {jpeg, "resnet20_gauss_noise_s3", "noise 3"},
		{jpeg, "resnet20_contrast_s3", "contrast"}, {jpeg, "resnet20_gauss_blur_s3", "blur 3"}, {jpeg,
			"resnet20_gauss_blur_s5", "blur 5"},
		{insects, "insects_gradual_bal", "INSECTS"}, {gas, "gas_sensor_b1-6_8_9", "gas sensors"}, {elec2, "elec2",
			"elec2"},
		{forecasts, "mlb", "MLB"}, {forecasts, "nba", "NBA"}, {forecasts, "nfl", "NFL"}, {forecasts, "nhl", "NHL"},
	} {
		s := h.one(f.file, f.name, f.shown)
		if h.err != nil {
			return
		}
		h.out = append(h.out, still(s, h.seed+2100+uint64(i), heldRows, i%2 == 1))
	}
}
