package recipe

import (
	"fmt"

	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/loss"
)

// Whose scores the loss au counts.
const (
	CDFBatch = "batch" // of each mini-batch
	CDFRows  = "rows"  // of the current head on all training rows
)

func (c Config) validateCDF() error {
	switch c.CDF {
	case "", CDFBatch:
		return nil
	case CDFRows:
	default:
		return fmt.Errorf("cdf %q, allowed batch, rows", c.CDF)
	}
	_, _, err := c.score()
	return err
}

// score is the CSF that the losses of a recipe count, and its number of bins.
func (c Config) score() (csf string, bins int, err error) {
	text := c.Loss
	if c.Interleave != nil {
		text += " + " + c.Interleave.Loss
	}
	l, err := loss.Parse(text)
	if err != nil {
		return "", 0, err
	}
	csf, bins, ok, err := l.Score()
	if err == nil && !ok {
		err = fmt.Errorf("cdf %q, allowed with the loss au: the loss is %s", c.CDF, text)
	}
	return csf, bins, err
}

// scoreCounts counts the scores of the current head on the training rows.
func scoreCounts(c Config, in Input) ([]float64, error) {
	if in.Current == nil {
		return nil, fmt.Errorf("cdf %q, but no current head is given", c.CDF)
	}
	if in.Current.D() != in.Train.D || in.Current.K() != in.Train.K {
		return nil, fmt.Errorf("cdf %q: a current head of %d features and %d classes, the rows have %d and %d",
			c.CDF, in.Current.D(), in.Current.K(), in.Train.D, in.Train.K)
	}
	csf, bins, err := c.score()
	if err != nil {
		return nil, err
	}
	counts := make([]float64, bins)
	pass, s := head.NewPass(in.Current, logitRows, head.Gonum{}), in.Train
	var scratch []float32
	for from := 0; from < s.N(); from += logitRows {
		n := min(logitRows, s.N()-from)
		scratch = s.Chunk(scratch, from, n)
		if err := loss.CountScores(csf, pass.Forward(in.Current, scratch, n), in.Current.K(), counts); err != nil {
			return nil, fmt.Errorf("current head, rows from %d: %w", from, err)
		}
	}
	return counts, nil
}
