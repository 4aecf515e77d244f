package main

import (
	"fmt"
	"math/rand/v2"
)

// A simulation of the construction had one bin off by .2 and a slice of 5 % that was corrupted; which, it does not say.
// These are all of them: every bin that has at least leastShare of the rows, and every corruption. It does say how
// ADWIN fared there: the bin and the slice at which it fares the same are as hard as those (wheretable.go). There are
// slices of other shares, too.

const (
	leastShare = .01
	binError   = .2
)

// corruptions are those of the shared logits.
var corruptions = []string{"gauss_noise_s1", "gauss_noise_s3", "contrast_s3", "gauss_blur_s3", "gauss_blur_s5"}

// binName is the stream in which bin j is off, sliceName that in which a slice is corrupted.
func binName(j int) string {
	return fmt.Sprintf("bin (%.2g, %.2g] off by %g", float64(j)/bins, float64(j+1)/bins, binError)
}

func sliceName(corruption string) string { return shareName(corruption, 1./sliceOf) }

func shareName(corruption string, share float64) string {
	return fmt.Sprintf("%s in a slice of %.3g %%", corruption, 100*share)
}

// The slices of other shares than 5 % have this corruption.
const shareCorruption = "gauss_noise_s3"

var otherShares = []float64{.045, .0525, .055, .06}

// shareTest is that of the rows of p in bin j.
func (p pool) share(j int) float64 {
	n := 0.
	for _, c := range p.c {
		if binOf(c) == j {
			n++
		}
	}
	return n / float64(len(p.c))
}

// where are the streams of that kind which are not among the delays.
func where(s *scores) []stream {
	p := s.calibrated()
	mk := func(name string, q pool) stream {
		return stream{group: groupWhere, name: name, n: changeAt + delayLimit, change: changeAt, draw: after(p, q)}
	}
	named := map[string]bool{}
	for _, d := range delays(s) {
		named[d.name] = true
	}
	var out []stream
	for j := range bins {
		if p.share(j) >= leastShare && !named[binName(j)] {
			out = append(out, mk(binName(j), p.biased(func(c float64) float64 {
				if binOf(c) == j {
					return -binError
				}
				return 0
			})))
		}
	}
	for _, c := range corruptions {
		if named[sliceName(c)] {
			continue
		}
		q := s.rows("resnet20_"+c, 1)
		st := mk(sliceName(c), p)
		st.draw = inSlice(p, q)
		out = append(out, st)
	}
	q := s.rows("resnet20_"+shareCorruption, 1)
	for _, share := range otherShares {
		st := mk(shareName(shareCorruption, share), p)
		st.draw = inShare(p, q, share)
		out = append(out, st)
	}
	return out
}

// inShare draws from p, and after the change a share of the rows from q.
func inShare(p, q pool, share float64) func(*rand.Rand, int) drawn {
	return func(rng *rand.Rand, i int) drawn {
		if i >= changeAt && rng.Float64() < share {
			return q.row(rng)
		}
		return p.row(rng)
	}
}

// placed is a stream of an error in a part of the rows: in a bin, or in a slice where the bin is -1.
type placed struct {
	name       string
	bin        int
	corruption string
	share      float64 // of the rows
}

// places are all of them, those among the delays included.
func places(p pool) []placed {
	var out []placed
	for j := range bins {
		if share := p.share(j); share >= leastShare {
			out = append(out, placed{name: binName(j), bin: j, share: share})
		}
	}
	for _, c := range corruptions {
		out = append(out, placed{name: sliceName(c), bin: -1, corruption: c, share: 1. / sliceOf})
	}
	for _, share := range otherShares {
		out = append(out, placed{name: shareName(shareCorruption, share), bin: -1, corruption: shareCorruption,
			share: share})
	}
	return out
}
