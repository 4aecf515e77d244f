package refit

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/evalue"
	"github.com/plumbline/plumbline/calib/metric"
	"github.com/plumbline/plumbline/operators/model/stage"
)

// eceBins is the number of bins of the ECE in a validation.
const eceBins = 15

// candidate is the fit of one method, under validation.
type candidate struct {
	fitResult
	out   string // why it can no longer be published; "" = it can
	score score
	test  *evalue.Paired
	paired

	known sampleLosses
}

// paired sums the differences d of the NLL of rows, new - in force: Σwd, Σw²d, Σw²d².
type paired struct{ wd, w2d, w2d2 float64 }

// add adds a row of weight w that gained so much.
func (p *paired) add(w, gain float64) {
	p.wd -= w * gain
	p.w2d -= w * w * gain
	p.w2d2 += w * w * gain * gain
}

// diff returns the mean difference and its standard error; s has the same rows.
func (p *paired) diff(s *score) (mean, se float64) {
	mean = p.wd / s.w
	return mean, math.Sqrt(max(0, p.w2d2-2*mean*p.w2d+mean*mean*s.w2)) / s.w
}

// score holds the sums of one calibrator over the validated rows.
type score struct {
	w, w2, nll, hits float64
	bins             [eceBins]metric.Bin
}

// add adds a row of weight w as the candidate scores it, and its gain over the calibrator in force.
func (c *candidate) add(now stage.RowScore, w, gain, unit float64) error {
	c.score.add(now, w)
	c.paired.add(w, gain)
	return c.test.Add(unit * gain)
}

func (s *score) add(r stage.RowScore, w float64) {
	s.w += w
	s.w2 += w * w
	s.nll += w * r.NLL
	b := &s.bins[metric.BinIndex(r.Confidence, eceBins)]
	b.N++
	b.W += w
	b.SumC += w * r.Confidence
	if r.Hit {
		s.hits += w
		b.SumA += w
	}
}

func (s *score) ece() float64  { return metric.ECE(s.bins[:]) }
func (s *score) mean() float64 { return s.nll / s.w }
func (s *score) acc() float64  { return s.hits / s.w }

// diff returns the mean paired NLL difference, new - in force, and its standard error.
func (c *candidate) diff() (mean, se float64) { return c.paired.diff(&c.score) }

// refuted says which bound a candidate breaks beyond doubt: by more than chance allows, at any time. It returns "" if
// there is none.
func (r *run) refuted(c *candidate, cfg *Config) string {
	n := float64(r.rows)
	if rise := c.score.ece() - r.inForce.ece(); rise > cfg.MaxECERise+2*evalue.ECERadius(n, eceBins, cfg.Alpha) {
		return fmt.Sprintf("ECE rises by %.4f", rise)
	}
	if drop := r.inForce.acc() - c.score.acc(); drop > cfg.MaxAccuracyDrop+2*evalue.ECERadius(n, 1, cfg.Alpha) {
		return fmt.Sprintf("accuracy falls by %.4f", drop)
	}
	return ""
}

// verdict says why a candidate may not be published now; "" = it may.
func (r *run) verdict(c *candidate, cfg *Config) string {
	diff, se := c.diff()
	switch {
	case c.out != "":
		return c.out
	case r.rows < leastValidation:
		return fmt.Sprintf("%d rows are too few to tell", r.rows)
	case c.test.LogE() < r.need(cfg):
		return fmt.Sprintf("NLL difference %.5f ± %.5f: the chance of that without a gain is up to %.2g, and must be "+
			"below %.2g", diff, se, math.Exp(-max(c.test.LogE(), 0)), math.Exp(-r.need(cfg)))
	case -diff < cfg.MinNLLGain:
		return fmt.Sprintf("NLL would fall by %.5f, less than %g", -diff, cfg.MinNLLGain)
	case c.score.ece() > r.inForce.ece()+cfg.MaxECERise:
		return fmt.Sprintf("ECE would rise from %.4f to %.4f", r.inForce.ece(), c.score.ece())
	case c.score.acc() < r.inForce.acc()-cfg.MaxAccuracyDrop:
		return fmt.Sprintf("accuracy would fall from %.4f to %.4f", r.inForce.acc(), c.score.acc())
	}
	return ""
}
