package main

import (
	"math/rand/v2"
	"slices"
)

// delayed returns the rows in the order of issue + lag(row).
func delayed(lag func(rng *rand.Rand, r drawn) float64) func(*rand.Rand, []drawn) []drawn {
	return func(rng *rand.Rand, rows []drawn) []drawn {
		type late struct {
			at float64
			i  int
		}
		order := make([]late, len(rows))
		for i, r := range rows {
			order[i] = late{float64(i) + lag(rng, r), i}
		}
		slices.SortFunc(order, func(a, b late) int {
			switch {
			case a.at < b.at:
				return -1
			case a.at > b.at:
				return 1
			}
			return a.i - b.i
		})
		out := make([]drawn, len(rows))
		for i, o := range order {
			out[i] = rows[o.i]
		}
		return out
	}
}

// complaintLag is what a wrong row waits on average where complaints come first; a right one waits longest.
const (
	complaintLag = 100
	longestLag   = 5_000
)

// lates are calibrated streams whose labels come late: independent lags, and complaints first, as they come and
// matured.
func lates(s *scores, n int) []stream {
	p := s.calibrated()
	minus, plus := p.biased(func(float64) float64 { return -tolerance }),
		p.biased(func(float64) float64 { return tolerance })
	turns := func(rng *rand.Rand, i int) drawn {
		if i/alternate%2 == 0 {
			return plus.row(rng)
		}
		return minus.row(rng)
	}
	mk := func(name string, bounded bool, draw func(*rand.Rand, int) drawn,
		lag func(*rand.Rand, drawn) float64) stream {
		return stream{group: groupLate, name: name, n: n, bounded: bounded, draw: draw, arrival: delayed(lag)}
	}
	exponential := func(mean float64) func(*rand.Rand, drawn) float64 {
		return func(rng *rand.Rand, _ drawn) float64 { return mean * rng.ExpFloat64() }
	}
	complaints := func(rng *rand.Rand, r drawn) float64 {
		if r.right {
			return longestLag * rng.Float64()
		}
		return min(longestLag, complaintLag*rng.ExpFloat64())
	}
	// Matured: a row enters at issue + longest lag, whenever its label came; that is the order of issue again.
	matured := func(rng *rand.Rand, r drawn) float64 { _ = complaints(rng, r); return longestLag }
	return []stream{
		mk("calibrated, lags of 1,000 rows", true, always(p), exponential(1000)),
		mk("calibrated, lags of 50,000 rows", true, always(p), exponential(50_000)),
		mk("±ε in turns, lags of 1,000 rows", true, turns, exponential(1000)),
		mk("±ε in turns, lags of 50,000 rows", true, turns, exponential(50_000)),
		mk("complaints first, as they come", false, always(p), complaints),
		mk("complaints first, matured", true, always(p), matured),
	}
}
