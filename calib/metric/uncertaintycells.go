package metric

import (
	"fmt"
	"math"
	"slices"
)

const (
	// resampleLimit is about how many cells a resample has. A maximum over 1,024 thresholds is some 2 % below that over
	// all of them; of the other metrics the means differ by less.
	resampleLimit = 1024
	// resampleGrid is the number of cells on [0,1] for smECE in a resample; the observed value has its own, finer one.
	resampleGrid = 512
	// resampleTol ends the search for smECE's bandwidth in a resample, far below the noise of resampling.
	resampleTol = 1e-6
)

// UncertaintyCells returns the uncertainty of a calibration error, as Evaluate does by its key, of rows that are known
// by cell, in ascending order of confidence, such as acc.Grid.Groups. The observed value is that of the cells too. Not
// for ece, ece_l2 and mce, of which ResampleBins of the equal-width bins is the one, and not for cwece and cwece_l2,
// which cells know nothing of.
func UncertaintyCells(cells []Bin, key string, opt Options) (Interval, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Interval{}, err
	}
	mass := func(f func([]Bin) float64) (Interval, error) {
		return ResampleBins(EqualMassCells(cells, opt.Bins), f, opt.Resamples, opt.Seed), nil
	}
	switch key {
	case "ace":
		return mass(ECE)
	case "ace_l2":
		return mass(ECEL2)
	case "debiased_l2":
		return mass(DebiasedL2)
	case "ks", "sweep", "sweep_l2", "smece", "sbece_bin", "sbece_lb":
		all := map[string]Interval{}
		cellUncertainties(all, cells, nil, opt, func(keys ...string) bool { return slices.Contains(keys, key) })
		return all[key], nil
	}
	return Interval{}, fmt.Errorf("key: %q, of cells allowed are ace, ace_l2, debiased_l2, ks, sweep, sweep_l2, "+
		"smece, sbece_bin and sbece_lb", key)
}

// cellStat is one or more metrics that are read from cells together: of resampled cells, and the observed ones.
type cellStat struct {
	keys []string
	eval func(cells []Bin, out []float64)
	rows func(s Sorted, out []float64)
}

func cellStats(cells []Bin, opt Options) []cellStat {
	smooth := newCellSmoother(resampleGrid)
	return []cellStat{
		{
			[]string{"ks"},
			func(cells []Bin, out []float64) { out[0] = KSCells(cells) },
			func(s Sorted, out []float64) { out[0] = KS(s) },
		}, {
			[]string{"sweep", "sweep_l2"},
			func(cells []Bin, out []float64) { bins := SweepCells(cells); out[0], out[1] = ECE(bins), ECEL2(bins) },
			func(s Sorted, out []float64) { bins := Sweep(s); out[0], out[1] = ECE(bins), ECEL2(bins) },
		}, {
			[]string{"smece"},
			func(cells []Bin, out []float64) { out[0] = smooth.ece(cells) },
			func(s Sorted, out []float64) { out[0] = SmECE(s.C, s.A, s.W) },
		}, {
			[]string{"sbece_bin", "sbece_lb"},
			newSoftCells(cells, opt).eval,
			func(s Sorted, out []float64) {
				sums := SoftBins(s.C, s.A, s.W, opt.SoftBins, opt.SoftTemperature)
				out[0] = SBECEBin(sums, opt.Norm)
				if out[1] = SBECELB(sums); opt.Norm != 2 {
					out[1] = SBECELBRows(s.C, s.A, s.W, opt.soft())
				}
			},
		},
	}
}

// cellUncertainties adds the intervals of the metrics that are read from cells, about their values of the rows, or of
// the cells where the rows are nil.
func cellUncertainties(all map[string]Interval, cells []Bin, rows *Sorted, opt Options, want func(...string) bool) {
	cells = slices.DeleteFunc(slices.Clone(cells), func(b Bin) bool { return !(b.W > 0) })
	var stats []cellStat
	var keys []string
	var observed []float64
	for _, st := range cellStats(cells, opt) {
		if !want(st.keys...) {
			continue
		}
		value := make([]float64, len(st.keys))
		if rows != nil {
			st.rows(*rows, value)
		} else {
			st.eval(cells, value)
		}
		stats, keys, observed = append(stats, st), append(keys, st.keys...), append(observed, value...)
	}
	ivs := resampleCells(cells, observed, func(cells []Bin, out []float64) {
		for _, st := range stats {
			st.eval(cells, out)
			out = out[len(st.keys):]
		}
	}, opt.Resamples, opt.Seed)
	for i, key := range keys {
		all[key] = ivs[i]
	}
}

// softCells evaluates SB-ECE of resampled cells: the memberships of a cell are those of its mean confidence, which a
// resample keeps.
type softCells struct {
	opt  Options
	c    []float64 // of the cells
	u    []float64 // cells × M
	sums SoftSums
}

func newSoftCells(cells []Bin, opt Options) *softCells {
	m := opt.SoftBins
	s := &softCells{opt: opt, sums: newSoftSums(m)}
	for _, b := range cells {
		u := make([]float64, m)
		SoftWeights(u, b.Conf(), opt.SoftTemperature)
		s.c, s.u = append(s.c, b.Conf()), append(s.u, u...)
	}
	return s
}

func (s *softCells) eval(cells []Bin, out []float64) {
	m := s.opt.SoftBins
	sums := &s.sums
	sums.W = 0
	for j := range m {
		sums.S[j], sums.UC[j], sums.UA[j], sums.UC2[j] = 0, 0, 0, 0
	}
	for i, b := range cells {
		sums.W += b.W
		for j, u := range s.u[i*m : (i+1)*m] {
			sums.S[j] += u * b.W
			sums.UC[j] += u * b.SumC
			sums.UA[j] += u * b.SumA
			sums.UC2[j] += u * b.SumC * s.c[i]
		}
	}
	out[0] = SBECEBin(*sums, s.opt.Norm)
	if s.opt.Norm == 2 {
		out[1] = SBECELB(*sums)
		return
	}
	n := normOf(s.opt.Norm)
	for i, b := range cells {
		for j, u := range s.u[i*m : (i+1)*m] {
			if u *= b.W; u > 0 && sums.S[j] > 0 {
				n.add(math.Abs(sums.UA[j]/sums.S[j]-s.c[i]), u)
			}
		}
	}
	out[1] = n.mean(sums.W)
}
