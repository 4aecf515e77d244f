package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// Streams of the sets heal and first. The nets and seeds of the second half are listed here and were looked at once,
// when the method was done.
var (
	healNets = [2][]string{{"resnet20", "vgg16_bn", "repvgg_a0"}, {"resnet56", "mobilenetv2_x1_0", "shufflenetv2_x1_0"}}
	// Five seeds of each half; each seed has one net.
	healSeeds = [2][]uint64{{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}
	healRows  = []int{1000, 2000, 3000, 5000, 8000} // how long a fault lasts
)

const (
	healBefore = 4000 // rows before the fault
	healAfter  = 4000 // rows after it
	healWithin = 1000 // rows after it in which it must be healed
	healedECE  = .045
)

// healing is one stream of the set heal.
type healing struct {
	fault string
	rows  int // of the fault
	recipe
}

// faulty are the faults of the set heal: what they make of the rows of a net.
var faulty = []struct {
	name string
	make func(s *source, seed uint64) *source
}{
	{"30 % of the labels wrong", func(s *source, seed uint64) *source { return s.mislabelled(.3, seed) }},
	{"scores × 3", func(s *source, _ uint64) *source { return s.times(3) }},
	{"noise on the scores", func(s *source, seed uint64) *source { return s.noisy(4, seed) }},
}

// healings are streams whose fault goes away again.
func healings(l *library, unseen bool) (out []healing, err error) {
	half := step(unseen)
	sources, err := l.get(nets, healNets[half]...)
	if err != nil {
		return nil, err
	}
	for _, f := range faulty {
		for _, rows := range healRows {
			for i, seed := range healSeeds[half] {
				src := sources[i%len(sources)]
				name := fmt.Sprintf("%s: %s for %d rows, seed %d", src.name, f.name, rows, seed)
				all := healBefore + rows + healAfter
				out = append(out, healing{f.name, rows, recipe{name, true, func() (*stream, error) {
					bad := f.make(src, seed)
					from, to := float64(healBefore)/float64(all), float64(healBefore+rows)/float64(all)
					m := mix{name, 7000 + seed, all, false, []*source{src, bad},
						func(_ *rand.Rand, t float64) int { return step(t >= from && t < to) }}
					return m.streamOf(), nil
				}}})
			}
		}
	}
	return out, nil
}

// mislabelled has the label of another class on a share of its rows.
func (s *source) mislabelled(share float64, seed uint64) *source {
	out := &source{s.name, s.z, s.k, slices.Clone(s.labels)}
	r := rand.New(rand.NewPCG(seed, 5))
	for i, y := range out.labels {
		if r.Float64() < share {
			out.labels[i] = (y + 1 + r.Int32N(int32(s.k)-1)) % int32(s.k)
		}
	}
	return out
}

// noisy has Gaussian noise of that standard deviation on its scores.
func (s *source) noisy(sd float64, seed uint64) *source {
	out := &source{s.name, slices.Clone(s.z), s.k, s.labels}
	r := rand.New(rand.NewPCG(seed, 6))
	for i := range out.z {
		out.z[i] += float32(sd * r.NormFloat64())
	}
	return out
}

// firstRows is the length of a stream of the set first, firstChange the row of its change.
const (
	firstRows   = 15_000
	firstChange = 5000
)

// first is one stream of the set first.
type first struct {
	kind   string
	change int // the row at which its error begins; -1 = none is known
	recipe
}

var (
	firstNets = [2][]string{{"resnet20", "mobilenetv2_x0_5", "vgg16_bn"},
		{"resnet56", "shufflenetv2_x0_5", "repvgg_a0"}}
	firstSeeds = [2][]uint64{{1, 2}, {3, 4}}
)

// ofFew are the sources of the set first, and their seeds.
func ofFew(l *library, half int) ([]*source, []uint64, error) {
	sources, err := l.get(nets, firstNets[half]...)
	return sources, firstSeeds[half], err
}

// ofMany are the sources of the set many: a net of 100 classes, and drawn scores of 1,000: normal ones, on held-out
// streams Laplace's, with four of them raised; the labels are drawn from them.
func ofMany(l *library, half int) ([]*source, []uint64, error) {
	const classes, rows = 1000, 5000
	sources, err := l.get(nets100, []string{"resnet56", "vgg16_bn"}[half])
	if err != nil {
		return nil, nil, err
	}
	r := rand.New(rand.NewPCG(uint64(half), 9))
	s := &source{"1,000 classes", make([]float32, rows*classes), classes, make([]int32, rows)}
	for i := range s.z {
		s.z[i] = float32(r.NormFloat64())
		if half == 1 {
			s.z[i] = float32(r.ExpFloat64() - r.ExpFloat64())
		}
	}
	for i := range rows {
		for range 4 {
			s.z[i*classes+r.IntN(classes)] += float32(7.5 * r.ExpFloat64())
		}
	}
	return append(sources, s.drawn(uint64(half))), firstSeeds[half][:1], nil
}

// firsts are seven kinds of stream, of sources with their best temperature. The first two have labels drawn from that,
// the others have their real ones.
func firsts(sources []*source, seeds []uint64) (out []first) {
	three := []int32{3, 4, 5}
	const rows = float64(firstRows)
	for _, kind := range []struct {
		name   string
		change int
		make   func(s *source, seed uint64) []*source
		which  chooser
	}{
		{"calibrated", -1, func(s *source, seed uint64) []*source { return []*source{s.drawn(seed)} },
			func(*rand.Rand, float64) int { return 0 }},
		{"miscalibrated", 0, func(s *source, seed uint64) []*source { return []*source{s.drawn(seed).times(2)} },
			func(*rand.Rand, float64) int { return 0 }},
		{"sudden", firstChange, func(s *source, seed uint64) []*source { return []*source{s, s.noisy(4, seed)} },
			func(_ *rand.Rand, t float64) int { return step(t*rows >= firstChange) }},
		{"slow", -1, func(s *source, seed uint64) []*source {
			out := []*source{s}
			for i := 1; i <= 20; i++ {
				out = append(out, s.noisy(5*float64(i)/20, seed+100*uint64(i)))
			}
			return out
		}, func(_ *rand.Rand, t float64) int { return int(min(max(t-.1, 0)/.8, 1) * 20) }},
		{"recurring", -1, func(s *source, seed uint64) []*source { return []*source{s, s.noisy(4, seed)} },
			func(_ *rand.Rand, t float64) int { return int(t*rows/3000) % 2 }},
		{"classes", -1, func(s *source, seed uint64) []*source {
			s = s.noisy(3, seed)
			return []*source{s, s.of(three...)}
		}, func(r *rand.Rand, t float64) int { return step(t >= 1./3 && r.Float64() < .7) }},
		{"temporary", -1, func(s *source, seed uint64) []*source {
			return []*source{s, s.mislabelled(.3, seed)}
		}, func(_ *rand.Rand, t float64) int { return step(t*rows >= firstChange && t*rows < firstChange+4000) }},
	} {
		for _, src := range sources {
			for _, seed := range seeds {
				name := fmt.Sprintf("%s: %s, seed %d", src.name, kind.name, seed)
				out = append(out, first{kind.name, kind.change, recipe{name, true, func() (*stream, error) {
					base, err := src.tempered()
					if err != nil {
						return nil, err
					}
					m := mix{name, 8000 + seed, firstRows, false, kind.make(base, seed), kind.which}
					return m.streamOf(), nil
				}}})
			}
		}
	}
	return out
}

// tempered is the source with its best temperature.
func (s *source) tempered() (*source, error) {
	t, _, err := calibrator.FitTemperature(calibrator.NewData(s.z, s.k, s.labels, nil), calibrator.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return s.times(float32(1 / t.T())), nil
}

// drawn has labels drawn from its own probabilities.
func (s *source) drawn(seed uint64) *source {
	out := &source{s.name, s.z, s.k, slices.Clone(s.labels)}
	r := rand.New(rand.NewPCG(seed, 7))
	z, p := make([]float64, s.k), make([]float64, s.k)
	for i := range out.labels {
		for j := range z {
			z[j] = float64(s.z[i*s.k+j])
		}
		calibrator.Identity{}.Apply(p, z)
		out.labels[i] = draw(r, p)
	}
	return out
}
