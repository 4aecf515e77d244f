package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A simulation of the construction had one bin off by .2 and a slice of 5 % that was corrupted; which, it does not say. These are all of
// them: every bin that has at least leastShare of the rows, and every corruption.

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

func sliceName(corruption string) string { return corruption + " in a slice of 5 %" }

// share is that of the rows of p in bin j.
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
	return out
}

// places are the names of all streams of the two kinds, those among the delays included.
func places(p pool) (bin, slice []string) {
	for j := range bins {
		if p.share(j) >= leastShare {
			bin = append(bin, binName(j))
		}
	}
	for _, c := range corruptions {
		slice = append(slice, sliceName(c))
	}
	return bin, slice
}

// binOracle is the number of rows that a bet on the true rate takes to 1/α = 1e5, of bin j alone.
func (p pool) binOracle(j int) float64 {
	var sum float64
	for _, c := range p.c {
		if binOf(c) == j {
			sum += kl(max(0, c-binError), min(max(c-tolerance, 1e-9), 1-1e-9))
		}
	}
	return math.Log(1e5) * float64(len(p.c)) / sum
}

// gap is the mean of a - c.
func (p pool) gap() float64 {
	var sum float64
	for i, c := range p.c {
		if p.right[i] {
			sum++
		}
		sum -= c
	}
	return sum / float64(len(p.c))
}

// whereTable says how soon an error is seen by the bin that it is in, or by what befell the slice.
func whereTable(b *strings.Builder, ours []result, s *scores) {
	columns := []column{{"alarm", 1e5}, {"bins .02", 1e5}, {"change", 1e4}, {"accuracy", 1e4}}
	head := []string{"change", "rows in it", "by how much it moves the mean of a − c", "oracle, 1e5"}
	for _, c := range columns {
		head = append(head, c.String())
	}
	var rows [][]string
	add := func(name string, text ...string) {
		r := named(ours, name)
		if r == nil {
			return
		}
		line := append([]string{name}, text...)
		for _, c := range columns {
			line = append(line, summarise(r.at(c.name, c.level), r.Change).rows())
		}
		rows = append(rows, line)
	}
	p := s.calibrated()
	for j := range bins {
		add(binName(j), percent(p.share(j)), fmt.Sprintf("%.4f", -binError*p.share(j)), fmt.Sprintf("%.0f", p.binOracle(j)))
	}
	for _, c := range corruptions {
		add(sliceName(c), percent(1./sliceOf), fmt.Sprintf("%.4f", s.rows("resnet20_"+c, 1).gap()/sliceOf), "")
	}
	table(b, fmt.Sprintf("**Where the error is**: one bin off by %g, each that has at least %.0f %% of the rows, and a slice of 5 %% seen in the whole, by corruption. Median rows to the alarm. The oracle knows bin and rate.", binError, 100*leastShare), head, rows)
}

// whereBars judges the medians of the simulation against the median bin and the median corruption.
func whereBars(ours []result, add func(bar, measured string, met bool)) {
	for _, kind := range []struct {
		prefix, suffix, what string
		most                 int
	}{{"bin (", " off by 0.2", "one bin off by 0.2, the median bin", 4100}, {"", sliceName(""), "a slice of 5 %, the median corruption", 40_800}} {
		var medians []int
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
		add(fmt.Sprintf("%s: at most %d rows (bins .02, 1e5)", kind.what, kind.most), fmt.Sprintf("%s, of %d", text, len(medians)), m <= kind.most)
	}
}
