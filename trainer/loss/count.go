package loss

import "fmt"

// Score says which CSF the terms au of a loss weigh by, and into how many bins they count it. ok is false where there
// is no such term; terms of different CSFs are an error, since a batch has one CDF.
func (l *Loss) Score() (csf string, bins int, ok bool, err error) {
	for _, t := range l.terms {
		a, is := t.term.(*au)
		switch {
		case !is:
		case ok && a.csf != csf:
			return "", 0, false, fmt.Errorf("loss %s: au of the CSFs %s and %s, allowed is one", l.text, csf, a.csf)
		case !ok:
			csf, bins, ok = a.csf, a.cdf.bins, true
		}
	}
	return csf, bins, ok, nil
}

// CountScores adds the CSF (msp, margin or negent) of the rows of n×K logits to counts, equal bins on [0, 1], each
// closed below and the last above too: what Batch.CDF takes. An error names the row and class of a logit that is not
// finite.
func CountScores(csf string, z []float32, k int, counts []float64) error {
	r := &rows{}
	r.resize(Batch{N: len(z) / k, K: k, Y: make([]int32, len(z)/k)})
	if err := load(r, z, 0); err != nil {
		return err
	}
	for i := range r.n {
		counts[binOf(r.score(csf, i), len(counts))]++
	}
	return nil
}
