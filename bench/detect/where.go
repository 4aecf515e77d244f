package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// A simulation of the construction had one bin off by .2 and a slice of 5 % that was corrupted; which, it does not say.
// These are all of them: every bin that has at least leastShare of the rows, and every corruption. It does say how
// ADWIN fared there: the bin and the slice at which it fares the same are as hard as those. There are
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

// spot is a place with what is known of it.
type spot struct {
	placed
	oracle float64 // rows, infinite within the tolerance
	moved  float64 // the mean of a - c
}

// spots are all places.
func (s *scores) spots() []spot {
	var out []spot
	for _, w := range places(s.calibrated()) {
		x := spot{placed: w}
		x.oracle, x.moved = s.placeOracle(w)
		out = append(out, x)
	}
	return out
}

// placeOracle is the number of rows that a bet on the true rates by bin takes to 1/α = 1e5 from the boundary of the
// tolerance:
//
//	log 1e5 / Σ π_j KL(rate_j ‖ m_j ± ε)    over the bins that are off by more than ε
//
// and by how much the mean of a - c moves.
func (s *scores) placeOracle(w placed) (rows, moved float64) {
	if w.bin >= 0 {
		p := s.calibrated()
		return p.binOracle(w.bin), -binError * w.share
	}
	p, q := s.calibrated(), s.rows("resnet20_"+w.corruption, 1)
	var sums [bins]struct{ n, c, a float64 }
	for _, part := range []struct {
		pool
		share float64
	}{{p, 1 - w.share}, {q, w.share}} {
		weight := part.share / float64(len(part.c))
		for i, c := range part.c {
			b := &sums[binOf(c)]
			b.n += weight
			b.c += weight * c
			b.a += weight * part.rate(i)
		}
	}
	var growth float64
	for _, b := range sums {
		gap := b.a - b.c
		moved += gap
		if math.Abs(gap) > tolerance*b.n {
			growth += b.n * kl(b.a/b.n, b.c/b.n+math.Copysign(tolerance, gap))
		}
	}
	return math.Log(1e5) / growth, moved
}

// rate is the probability that row i of the pool is right.
func (p pool) rate(i int) float64 {
	switch {
	case p.p != nil:
		return p.p[i]
	case p.right[i]:
		return 1
	}
	return 0
}

// binOracle is the oracle of bin j alone, row by row.
func (p pool) binOracle(j int) float64 {
	var sum float64
	for _, c := range p.c {
		if binOf(c) == j {
			sum += kl(max(0, c-binError), min(max(c-tolerance, 1e-9), 1-1e-9))
		}
	}
	return math.Log(1e5) * float64(len(p.c)) / sum
}

// yardstick is the peer of which the simulation gives figures in the same scenarios, and those figures: the share of
// the runs in which it found the bin, and the rows that it took to the slice.
const (
	yardstick        = "ADWIN (a − c)"
	yardstickSetting = "delta = 0.002"
	yardstickBin     = .25
	yardstickSlice   = 5856
	// What plumbline's construction took there.
	simulatedBin   = 4100
	simulatedSlice = 40_800
)

// whereTable says how soon an error is seen by the bin that it is in, or by what befell the slice.
func whereTable(b *strings.Builder, ours []result, peers []peer, all []spot) {
	columns := []column{{"alarm", 1e5}, {"bins .02", 1e5}, {"change", 1e4}, {"accuracy", 1e4}}
	head := []string{"change", "rows in it", "by how much it moves the mean of a − c", "oracle, 1e5"}
	for _, c := range columns {
		head = append(head, c.String())
	}
	head = append(head, "bins .02 to the oracle", yardstick+", "+yardstickSetting)
	var rows [][]string
	runs := 0
	for _, w := range all {
		r := named(ours, w.name)
		if r == nil {
			continue
		}
		line := []string{w.name, percent(w.share), fmt.Sprintf("%.4f", w.moved), "never"}
		if !math.IsInf(w.oracle, 0) {
			line[3] = fmt.Sprintf("%.0f", w.oracle)
		}
		for _, c := range columns {
			line = append(line, summarise(r.at(c.name, c.level), r.Change).rows())
		}
		ratio := ""
		if m := summarise(r.at("bins .02", 1e5), r.Change).median; m >= 0 {
			ratio = fmt.Sprintf("%.2f", float64(m)/w.oracle)
		}
		adwin, text := find(peers, yardstick, yardstickSetting, w.name), ""
		if runs = max(runs, len(adwin.First)); len(adwin.First) > 0 {
			text = adwin.summaryAfter(r.Change).place()
		}
		rows = append(rows, append(line, ratio, text))
	}
	table(b, fmt.Sprintf("**Where the error is**: one bin off by %g, each that has at least %.0f %% of the rows, and "+
		"a slice seen in the whole, by corruption and share. Median rows to the alarm. The oracle knows the rates by "+
		"bin and the row of the change: log 10⁵ / mean KL from the boundary of the tolerance, \"never\" where no bin "+
		"is outside. The share of the runs in which ADWIN finds it within %d rows stands beside its median (%d runs).",
		binError, 100*leastShare, delayLimit, runs), head, rows)
}

// place prints the share of runs with an alarm, and the median where most of them have one.
func (s summary) place() string {
	text := percent(s.crossed) + " found"
	if s.median >= 0 {
		text += fmt.Sprintf(", %d", s.median)
	}
	return text
}

// matched is a place with what the yardstick did there, and ours.
type matched struct {
	spot
	adwin summary
	ours  int // median, math.MaxInt for never
}

// matchedBars judge the construction at the bin and the slice that the yardstick finds as hard as those of the
// simulation.
func matchedBars(ours []result, peers []peer, all []spot, add func(bar, measured string, met bool)) {
	var inBin, inSlice []matched
	for _, w := range all {
		r, q := named(ours, w.name), find(peers, yardstick, yardstickSetting, w.name)
		if r == nil || len(q.First) == 0 {
			continue
		}
		m := matched{w, q.summaryAfter(r.Change), summarise(r.at("bins .02", 1e5), r.Change).median}
		if m.ours < 0 {
			m.ours = math.MaxInt
		}
		if w.bin >= 0 {
			inBin = append(inBin, m)
		} else if w.corruption == shareCorruption && m.adwin.median >= 0 {
			inSlice = append(inSlice, m)
		}
	}
	judge := func(all []matched, off func(matched) float64, what string, most int) {
		if len(all) == 0 {
			return
		}
		m := slices.MinFunc(all, func(a, b matched) int { return cmp.Compare(off(a), off(b)) })
		mine := "never"
		if m.ours < math.MaxInt {
			mine = fmt.Sprint(m.ours)
		}
		add(fmt.Sprintf("%s: at most %d rows (bins .02, 1e5)", what, most),
			fmt.Sprintf("%s, at %s (ADWIN: %s), the nearest of %d", mine, m.name, m.adwin.place(),
				len(all)), m.ours <= most)
	}
	judge(inBin, func(m matched) float64 { return math.Abs(m.adwin.crossed - yardstickBin) },
		"one bin off by 0.2 that ADWIN (δ = .002) finds in 25 % of the runs, as it did in the simulation", simulatedBin)
	judge(inSlice, func(m matched) float64 { return math.Abs(math.Log(float64(m.adwin.median) / yardstickSlice)) },
		fmt.Sprintf("the slice of %s for which ADWIN (δ = .002) takes %d rows, as it did in the simulation",
			shareCorruption, yardstickSlice), simulatedSlice)
}

// whereBars judges the medians of the simulation against the median bin and the median corruption.
func whereBars(ours []result, all []spot, add func(bar, measured string, met bool)) {
	for _, kind := range []struct {
		prefix, suffix, what string
		most                 int
	}{{"bin (", " off by 0.2", "one bin off by 0.2, the median bin", simulatedBin}, {"", sliceName(""),
		"a slice of 5 %, the median corruption", simulatedSlice}} {
		var medians []int
		inside := 0
		for i := range ours {
			r := &ours[i]
			if !strings.HasPrefix(r.Name, kind.prefix) || !strings.HasSuffix(r.Name, kind.suffix) {
				continue
			}
			m := summarise(r.at("bins .02", 1e5), r.Change).median
			if m < 0 {
				m = math.MaxInt
			}
			medians = append(medians, m)
			if slices.ContainsFunc(all, func(w spot) bool { return w.name == r.Name && math.IsInf(w.oracle, 1) }) {
				inside++
			}
		}
		if len(medians) < 2 {
			continue
		}
		slices.Sort(medians)
		m := medians[(len(medians)-1)/2]
		text := "never"
		if m < math.MaxInt {
			text = fmt.Sprint(m)
		}
		text = fmt.Sprintf("%s, of %d", text, len(medians))
		if m > kind.most && inside > 0 {
			text += fmt.Sprintf(" (%d of them put no bin off by more than ε: they keep the null, and no test of the "+
				"same guarantee may find them)", inside)
		}
		add(fmt.Sprintf("%s: at most %d rows (bins .02, 1e5)", kind.what, kind.most), text, m <= kind.most)
	}
}
