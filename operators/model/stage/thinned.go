package stage

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
)

// Where only a part of the labels of a class come, such as of complaints, two figures that know nothing of each other
// give the same ratio r of that class's coverage to that of the others:
//
//	odds(y = c | labelled, x) = r·p_c(x)/(1 - p_c(x))    the labels beside the scores
//	N_s ∝ a_s/r + o_s                                    all predictions beside those with a label
//
// with s the predicted class, c or another, and its band of confidence, N_s the predictions, a_s the labelled rows of
// class c and o_s the other ones. A class that comes less often shows in the first only. Rows that are labelled by what
// the model says of them show in the second only, and are described better by a coverage of each predicted class, or of
// each band.
const (
	// thinnedShare is the most that r is, by both figures.
	thinnedShare = .7
	// thinnedZ is the least standard score of the first figure, and thinnedNats what the second must be more likely
	// than equal coverage, in nats.
	thinnedZ    = 3.5
	thinnedNats = 6
	// thinnedOpen is the least share of predictions without a label.
	thinnedOpen = .02
)

// symbols is the number of s.
const symbols = 2 * acc.Bands

// symbolOf is the s of a prediction.
func symbolOf(says, class, band int) int {
	if says == class {
		return acc.Bands + band
	}
	return band
}

// thinned is what Withheld says of a class that only a part of the labels of come.
func (l *labels) thinned() (string, error) {
	if l.covered.Said == nil || l.open() < thinnedOpen*float64(l.covered.Predictions) {
		return "", nil
	}
	var few []int
	for c := range l.key.K {
		// The test itself is the sharper one where scores are sure.
		if z := (l.of[c] - l.expected[c]) / math.Sqrt(l.variance[c]+1e-9); z <= -thinnedZ/2 {
			few = append(few, c)
		}
	}
	p, err := l.probabilities(few)
	if err != nil {
		return "", err
	}
	for i, c := range few {
		if why := l.thinnedClass(c, p[i]); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// thinnedClass is thinned of one class, of these probabilities, by the rows of the time of the predictions.
func (l *labels) thinnedClass(class int, of []float64) string {
	p, hit, at := make([]float64, 0, len(l.rows)), make([]bool, 0, len(l.rows)), make([]int, 0, len(l.rows))
	for i, row := range l.rows {
		if row.TS > l.to {
			continue
		}
		p, hit = append(p, min(max(of[i], oddsFloor), 1-oddsFloor)), append(hit, int(row.Y) == class)
		at = append(at, symbolOf(l.said[i].Arg, class, acc.BandOf(l.said[i].Conf)))
	}
	logOdds, information := oddsRatio(p, hit)
	if logOdds*math.Sqrt(information) > -thinnedZ || logOdds > math.Log(thinnedShare) {
		return ""
	}
	var all, labelled, counted, expected [symbols]float64
	sum, has := 0.0, 0
	for i, s := range at {
		labelled[s]++
		if hit[i] {
			counted[s]++
			has++
		}
		expected[s] += moreOdds(p[i], math.Exp(logOdds))
		sum += p[i]
	}
	for cell := range l.covered.Said.Cells() {
		all[symbolOf(cell.Class, class, cell.Band)] += float64(cell.Seen.N)
	}
	r := coverageRatio(all, labelled, counted, expected)
	if r > thinnedShare {
		return ""
	}
	return fmt.Sprintf("%d of %d labels are of class %d, where the scores expect %.0f, and fewer predictions of "+
		"that class have a label: its labels seem to come %.2g times as often as others. If the rest come later, set "+
		"alarm.matured to the longest delay; else labels tell nothing of that class",
		has, len(p), class, sum, r)
}

// oddsFloor keeps odds finite.
const oddsFloor = 1e-9

// moreOdds is the probability of r times the odds.
func moreOdds(p, r float64) float64 { return r * p / (1 - p + r*p) }

// oddsRatio is ln r of the first figure by maximum likelihood, within ±6, and its Fisher information.
func oddsRatio(p []float64, hit []bool) (logOdds, information float64) {
	const steps, bound, tolerance = 30, 6, 1e-6
	for range steps {
		r, gradient := math.Exp(logOdds), 0.0
		information = oddsFloor
		for i, x := range p {
			x = moreOdds(x, r)
			information += x * (1 - x)
			if gradient -= x; hit[i] {
				gradient++
			}
		}
		step := min(1, max(-1, gradient/information))
		if logOdds = min(bound, max(-bound, logOdds+step)); math.Abs(step) < tolerance {
			break
		}
	}
	return logOdds, information
}

// coverageRatio is r of the second figure by maximum likelihood; 1 where the predictions do not ask for it. Of the
// labelled rows those of the class are counted, or expected by the first figure, which has less noise where they are
// few.
func coverageRatio(all, labelled, counted, expected [symbols]float64) float64 {
	var says, saysLabelled [2]float64
	var band, bandLabelled [acc.Bands]float64
	var rows, sampled float64
	for s, n := range labelled {
		if n == 0 { // no coverage is known
			all[s] = 0
		}
		b := s % acc.Bands
		rows, sampled = rows+all[s], sampled+n
		says[s/acc.Bands], saysLabelled[s/acc.Bands] = says[s/acc.Bands]+all[s], saysLabelled[s/acc.Bands]+n
		band[b], bandLabelled[b] = band[b]+all[s], bandLabelled[b]+n
	}
	// Both the predictions and the sampled rows are counts, so the scale is that of the difference of the two.
	scale := 1 / (1 + rows/sampled)
	likelihood := func(share func(s int) float64) (sum float64) {
		var total float64
		for s, n := range all {
			if n > 0 {
				x := share(s)
				total, sum = total+x, sum+n*math.Log(x)
			}
		}
		return scale * (sum - rows*math.Log(total))
	}
	const grid, lowest = 100, .01
	best, ratio := math.Inf(-1), 1.0
	for _, of := range [][symbols]float64{counted, expected} {
		for i := range grid {
			r := math.Pow(lowest, float64(i)/(grid-1))
			if l := likelihood(func(s int) float64 { return labelled[s] - of[s] + of[s]/r }); l > best {
				best, ratio = l, r
			}
		}
	}
	equal := likelihood(func(s int) float64 { return labelled[s] })
	bySays := likelihood(func(s int) float64 {
		return labelled[s] * says[s/acc.Bands] / saysLabelled[s/acc.Bands]
	})
	byBand := likelihood(func(s int) float64 {
		return labelled[s] * band[s%acc.Bands] / bandLabelled[s%acc.Bands]
	})
	if best < equal+thinnedNats || best < max(bySays, byBand) {
		return 1
	}
	return ratio
}
