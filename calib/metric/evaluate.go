package metric

import (
	"math"

	"github.com/plumbline/plumbline/calib/kernel"
)

// Evaluate computes every metric of the rows; the definition of each is at its function and in docs/metrics.md.
// Rows without a label (-1) or of weight 0 take no part. With no other row n is 0 and every metric NaN. It returns
// an error that names the row if a label, a weight or a score is not allowed, or the option if a setting is not.
func Evaluate(rows Rows, opt Options) (Report, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Report{}, err
	}
	s, err := rows.scan(opt, true)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		N:        s.n,
		ZeroRows: rows.ZeroRows(),
		Accuracy: s.right / s.total, // a total of 0 makes the means NaN
		NLL:      s.nll / s.total,
		Brier:    s.brier / s.total,
		CWECE:    s.classes.ECE(),
		CWECEL2:  s.classes.ECEL2(),
		SmECE:    SmECE(s.c, s.a, s.w),
	}
	r.setBinned(s.top, opt)
	sorted := SortWeighted(s.c, s.a, s.w)
	r.setSorted(sorted, opt)
	soft := SoftBins(s.c, s.a, s.w, opt.SoftBins, opt.SoftTemperature)
	r.SBECEBin = SBECEBin(soft, opt.Norm)
	if opt.Norm == 2 {
		r.SBECELB = SBECELB(soft)
	} else {
		r.SBECELB = SBECELBRows(s.c, s.a, s.w, opt.soft())
	}
	if opt.Uncertainty {
		if r.Intervals, err = uncertainties(rows, sorted, s.top, s.classes, opt); err != nil {
			return Report{}, err
		}
	}
	if s.csf != nil {
		sorted = SortWeighted(s.csf, s.a, s.w)
	}
	r.AURC, r.EAURC, r.AUROC, r.FPR95 = AURC(sorted), EAURC(sorted), AUROC(sorted), FPR95(sorted)
	if opt.Detail {
		r.Detail = newDetail(s.top, soft, s, opt)
	}
	return r, nil
}

func (r *Report) setBinned(bins []Bin, opt Options) {
	r.ECE, r.ECEL2, r.MCE = ECE(bins), ECEL2(bins), MCE(bins)
	iv := Resample(bins, opt.Resamples, opt.Seed)
	r.ECENull, r.ECELo, r.ECEHi = iv.Null, iv.Lo, iv.Hi
}

func (r *Report) setSorted(s Sorted, opt Options) {
	mass := EqualMass(s, opt.Bins)
	r.ACE, r.ACEL2, r.DebiasedL2 = ECE(mass), ECEL2(mass), DebiasedL2(mass)
	r.KS = KS(s)
	sweep := Sweep(s)
	r.Sweep, r.SweepL2 = ECE(sweep), ECEL2(sweep)
}

// Basics are the metrics that need one pass over the rows and no sort, with the sums that they are read from.
type Basics struct {
	N                    int64
	W                    float64 // Σw
	Accuracy, Confidence float64 // means of a and c
	NLL, Brier           float64
	ECE, ECEL2, MCE      float64
	CWECE, CWECEL2       float64
	Bins                 []Bin // equal width, top label
	Classes              *ClassWise
}

// Basic is the part of Evaluate that one pass gives: NLL, Brier score, ECE and class-wise ECE, to the last bit the
// same numbers. It is the fast way to rate millions of rows. Of the options it reads Bins.
func Basic(rows Rows, opt Options) (Basics, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Basics{}, err
	}
	s, err := rows.scan(opt, false)
	if err != nil {
		return Basics{}, err
	}
	bins := s.top
	b := Basics{
		N: s.n, W: s.total, Accuracy: s.right / s.total, Confidence: math.NaN(), NLL: s.nll / s.total,
		Brier: s.brier / s.total,
		ECE:   ECE(bins), ECEL2: ECEL2(bins), MCE: MCE(bins), CWECE: s.classes.ECE(), CWECEL2: s.classes.ECEL2(),
		Bins: bins, Classes: s.classes,
	}
	var conf float64
	for _, bin := range bins {
		conf += bin.SumC
	}
	b.Confidence = conf / s.total
	return b, nil
}

// scanned is what one pass over the rows leaves: the sums and, if that is asked for, the top-label view of each row.
type scanned struct {
	sums
	top     []Bin // equal width, top label
	classes *ClassWise

	rows   bool      // whether c, csf, a and w are kept
	c, csf []float64 // csf is nil where it is c
	a      []bool
	w      []float64 // nil where all weights are 1
}

// sums are by weight, but for n.
type sums struct {
	n                        int64
	total, right, nll, brier float64
}

// scan makes one pass; rows says whether to keep the confidence and the outcome of each row.
func (r Rows) scan(o Options, rows bool) (*scanned, error) {
	if err := r.checkBins(o.Bins); err != nil {
		return nil, err
	}
	r.W = unlessUnit(r.W)
	if r.F64 != nil {
		return scanExact(r, r.F64, o, rows)
	}
	return scanBlocks(r, o, rows)
}

func newScanned(r Rows, o Options, rows bool) *scanned {
	s := &scanned{top: make([]Bin, o.Bins), classes: NewClassWise(r.K, o.Bins), rows: rows}
	if n := len(r.Labels); rows {
		s.c, s.a = make([]float64, 0, n), make([]bool, 0, n)
		if r.W != nil {
			s.w = make([]float64, 0, n)
		}
		if o.CSF != MSP {
			s.csf = make([]float64, 0, n)
		}
	}
	return s
}

func scanExact[T kernel.Float](r Rows, scores []T, o Options, rows bool) (*scanned, error) {
	s := newScanned(r, o, rows)
	err := eachRow(r, scores, func(sum kernel.Row, p []float64, row []T, y int, w float64) {
		right := isRight(sum.Arg, y)
		s.n++
		s.total += w
		s.right += w * right
		s.nll += w * kernel.NLL(sum, row, y, r.Probs)
		s.brier += w * kernel.Brier(sum, p[y])
		addTop(s.top, sum.Conf, right, w)
		s.classes.AddWeighted(p, y, w)
		if rows {
			s.keep(&sum, right == 1, w, o.CSF)
		}
	})
	return s, err
}

// keep appends a row to the top-label view.
func (s *scanned) keep(r *kernel.Row, right bool, w float64, csf string) {
	s.c = append(s.c, r.Conf)
	s.a = append(s.a, right)
	if s.w != nil {
		s.w = append(s.w, w)
	}
	switch csf {
	case Margin:
		s.csf = append(s.csf, r.Margin())
	case NegEnt:
		// The order of 1 - H/ln K, without its ties: that is 1 for all surer rows.
		s.csf = append(s.csf, -r.Entropy)
	}
}
