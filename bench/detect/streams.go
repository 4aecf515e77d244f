package main

import (
	"hash/fnv"
	"math/rand/v2"
)

// drawn is one labelled row.
type drawn struct {
	c     float64
	right bool
}

// stream draws run after run of a scenario: n rows each, the same for the same number of the run.
type stream struct {
	group, name string
	n, change   int // rows; the change comes before row `change`, 0 where there is none or it is there from the start
	// every is how many rows of the whole a row stands for: above 1 for a slice with a key of its own, one of as many
	// keys.
	every int
	// epsilon is the tolerance that the stream keeps (bounded is true), the reason why nobody may alarm.
	bounded bool
	draw    func(rng *rand.Rand, i int) drawn
	// arrival reorders a run: labels come late. nil: in order.
	arrival func(rng *rand.Rand, rows []drawn) []drawn
}

func (p pool) row(rng *rand.Rand) drawn {
	u := rng.Uint64()
	i := int((u >> 32) * uint64(len(p.c)) >> 32)
	if p.p == nil {
		return drawn{p.c[i], p.right[i]}
	}
	return drawn{p.c[i], rng.Float64() < p.p[i]}
}

// weight is every, 1 where it is not set.
func (s *stream) weight() int { return max(1, s.every) }

// rows draws a run in the order in which its labels come.
func (s *stream) rows(run int, buffer []drawn) []drawn {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.group + "/" + s.name))
	rng := rand.New(rand.NewPCG(h.Sum64(), uint64(run)))
	buffer = buffer[:0]
	for i := range s.n {
		buffer = append(buffer, s.draw(rng, i))
	}
	if s.arrival != nil {
		return s.arrival(rng, buffer)
	}
	return buffer
}

const (
	groupCalm   = "false alarms"
	groupDelay  = "delay"
	groupWhere  = "delay by place"
	groupStable = "stably wrong"
	groupLate   = "late labels"
	changeAt    = 10_000
	tolerance   = .02 // of the headline: what the boundary streams keep
	alternate   = 5_000
	delayLimit  = 50_000 // rows after a change; beyond it counts as never
	// The streams on which peers' settings are chosen.
	calibratedName = "calibrated"
	turns          = "±ε in turns"

	sliceOf = 20 // a slice is one row in so many
)

func always(p pool) func(*rand.Rand, int) drawn {
	return func(rng *rand.Rand, _ int) drawn { return p.row(rng) }
}

// after draws from p up to the change and from q after it.
func after(p, q pool) func(*rand.Rand, int) drawn {
	return func(rng *rand.Rand, i int) drawn {
		if i < changeAt {
			return p.row(rng)
		}
		return q.row(rng)
	}
}

// calm are the streams on which nobody may alarm: calibrated, and on the boundary of the tolerance.
func calm(s *scores, n int) []stream {
	p := s.calibrated()
	plus := p.biased(func(float64) float64 { return tolerance })
	minus := p.biased(func(float64) float64 { return -tolerance })
	checker := p.biased(func(c float64) float64 {
		if int(c*15)%2 == 0 {
			return tolerance
		}
		return -tolerance
	})
	mk := func(name string, draw func(*rand.Rand, int) drawn) stream {
		return stream{group: groupCalm, name: name, n: n, bounded: true, draw: draw}
	}
	return []stream{
		mk(calibratedName, always(p)),
		mk("+ε everywhere", always(plus)),
		mk("−ε everywhere", always(minus)),
		mk("±ε by bin", always(checker)),
		mk(turns, func(rng *rand.Rand, i int) drawn {
			if i/alternate%2 == 0 {
				return plus.row(rng)
			}
			return minus.row(rng)
		}),
	}
}

// delays are streams that are calibrated for 10,000 rows and then change.
func delays(s *scores) []stream {
	p := s.calibrated()
	mk := func(name string, draw func(*rand.Rand, int) drawn) stream {
		return stream{group: groupDelay, name: name, n: changeAt + delayLimit, change: changeAt, draw: draw}
	}
	var out []stream
	for _, c := range corruptions {
		out = append(out, mk(c, after(p, s.rows("resnet20_"+c, 1))))
	}
	contrast, noise := s.rows("resnet20_contrast_s3", 1), s.rows("resnet20_gauss_noise_s3", 1)
	oneBin := p.biased(func(c float64) float64 {
		if c > 9./15 && c <= 10./15 {
			return -binError
		}
		return 0
	})
	out = append(out,
		mk("temperature ×0.67", after(p, s.distorted(.67))),
		mk("temperature ×1.25", after(p, s.distorted(1.25))),
		mk("bin (0.6, 0.67] off by 0.2", after(p, oneBin)),
		mk("all off by 0.05", after(p, p.biased(func(float64) float64 { return -.05 }))),
		mk("all off by 0.10", after(p, p.biased(func(float64) float64 { return -.1 }))),
		mk("contrast_s3, gradual over 10,000 rows", func(rng *rand.Rand, i int) drawn {
			if rng.Float64() < float64(i-changeAt)/10_000 {
				return contrast.row(rng)
			}
			return p.row(rng)
		}),
		mk("contrast_s3, 500 rows in every 2,500", func(rng *rand.Rand, i int) drawn {
			if i >= changeAt && i%2500 < 500 {
				return contrast.row(rng)
			}
			return p.row(rng)
		}),
		mk("gauss_noise_s3 in a slice of 5 %", inSlice(p, noise)),
	)
	return append(out, keyed(s)...)
}

// inSlice draws from p, and after the change one row in sliceOf from q.
func inSlice(p, q pool) func(*rand.Rand, int) drawn {
	return func(rng *rand.Rand, i int) drawn {
		if i >= changeAt && rng.IntN(sliceOf) == 0 {
			return q.row(rng)
		}
		return p.row(rng)
	}
}

// keyed are the rows of one key of sliceOf, all of which change; rows before and after the change are as many of the
// whole as in the other streams.
func keyed(s *scores) []stream {
	p := s.calibrated()
	var out []stream
	for _, c := range []string{"gauss_noise_s3", "contrast_s3", "gauss_blur_s3"} {
		q := s.rows("resnet20_"+c, 1)
		out = append(out, stream{group: groupDelay, name: c + " in a slice of 5 % with a key",
			n:      (changeAt + delayLimit) / sliceOf,
			change: changeAt / sliceOf, every: sliceOf, draw: func(rng *rand.Rand, i int) drawn {
				if i < changeAt/sliceOf {
					return p.row(rng)
				}
				return q.row(rng)
			}})
	}
	return out
}

// stable are models that are wrong from the first row and never change.
func stable(s *scores) []stream {
	p := s.calibrated()
	var out []stream
	for _, b := range []struct {
		name string
		bias float64
	}{{"0.03", .03}, {"0.05", .05}, {"0.10", .1}} {
		out = append(out, stream{group: groupStable, name: "overconfident by " + b.name, n: 100_000,
			draw: always(p.biased(func(float64) float64 { return -b.bias }))})
	}
	return out
}
