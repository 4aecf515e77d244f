package metric

// Evaluate computes every metric of the rows; the definition of each is at its function and in docs/metrics.md.
// Rows without a label (-1) take no part. With no labelled row n is 0 and every metric NaN. It returns an error
// that names the row if a label or a score is not allowed, or the option if a setting is not.
func Evaluate(rows Rows, opt Options) (Report, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Report{}, err
	}
	s, err := rows.scan(opt)
	if err != nil {
		return Report{}, err
	}
	n := float64(len(s.c)) // 0 makes the means NaN
	r := Report{
		N:        int64(len(s.c)),
		Accuracy: float64(s.right) / n,
		NLL:      s.nll / n,
		Brier:    s.brier / n,
		CWECE:    s.classes.ECE(),
		CWECEL2:  s.classes.ECEL2(),
		SmECE:    SmECE(s.c, s.a, nil),
	}
	bins := EqualWidth(s.c, s.a, nil, opt.Bins)
	r.setBinned(bins, opt)
	sorted := Sort(s.c, s.a)
	r.setSorted(sorted, opt)
	soft := SoftBins(s.c, s.a, nil, opt.SoftBins, opt.SoftTemperature)
	r.SBECEBin = SBECEBin(soft, opt.Norm)
	if opt.Norm == 2 {
		r.SBECELB = SBECELB(soft)
	} else {
		r.SBECELB = SBECELBRows(s.c, s.a, nil, opt.SoftBins, opt.SoftTemperature, opt.Norm)
	}
	if s.csf != nil {
		sorted = Sort(s.csf, s.a)
	}
	r.AURC, r.EAURC, r.AUROC, r.FPR95 = AURC(sorted), EAURC(sorted), AUROC(sorted), FPR95(sorted)
	if opt.Detail {
		r.Detail = newDetail(bins, soft, s.c, opt)
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
