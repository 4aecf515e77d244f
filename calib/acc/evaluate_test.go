package acc

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// TestAgreesWithEvaluate: the stream's numbers are those of the rows.
func TestAgreesWithEvaluate(t *testing.T) {
	for _, k := range []int{2, 10, 100} {
		const n = 3000
		rng := rand.New(rand.NewPCG(uint64(k), 5))
		s := must(New(Config{K: k}))
		rows := metric.Rows{K: k}
		p := make([]float64, k)
		for range n {
			_, _, z := randRow(rng, k)
			r, ok := kernel.Logits(z, p)
			if !ok {
				t.Fatal("kernel refused finite logits")
			}
			y := r.Arg
			if rng.IntN(4) == 0 {
				y = rng.IntN(k)
			}
			rows.F32 = append(rows.F32, z...)
			rows.Labels = append(rows.Labels, int32(y))
			if err := s.Predict(r, 1); err != nil {
				t.Fatal(err)
			}
			if err := s.Label(r, p, Truth{y, kernel.NLL(r, z, y, false), 1, 1, r.Conf}); err != nil {
				t.Fatal(err)
			}
		}
		want, err := metric.Evaluate(rows, metric.Options{Resamples: 1})
		if err != nil {
			t.Fatal(err)
		}
		l := s.Labelled
		bins := must(l.MSP.Bins(15))
		cw, cw2 := l.ClassWise.ECE()
		const exact = 1e-9 // rounding to fixed point, twice, and float64 sums of n rows
		near(t, "ece", metric.ECE(bins), want.ECE, exact)
		near(t, "ece_l2", metric.ECEL2(bins), want.ECEL2, exact)
		near(t, "mce", metric.MCE(bins), want.MCE, 1e-8) // a bin may have few rows
		near(t, "cwece", cw, want.CWECE, exact)
		near(t, "cwece_l2", cw2, want.CWECEL2, exact)
		near(t, "nll", l.Scores.NLL(), want.NLL, exact)
		near(t, "brier", l.Scores.Brier(), want.Brier, exact)
		near(t, "accuracy", l.Scores.Accuracy(), want.Accuracy, exact)
		near(t, "sbece_bin", metric.SBECEBin(l.Soft.Sums(), 2), want.SBECEBin, 1e-8) // a root of small sums
		near(t, "sbece_lb", metric.SBECELB(l.Soft.Sums()), want.SBECELB, 1e-8)
		near(t, "ece of served", metric.ECE(must(l.Served.Bins(15))), want.ECE, exact)
		const cell = 2e-3 // ties inside a cell
		near(t, "aurc", l.MSP.AURC(), want.AURC, cell)
		byMargin, err := metric.Evaluate(rows, metric.Options{Resamples: 1, CSF: "margin"})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "aurc by margin", l.Margin.AURC(), byMargin.AURC, cell)
		byEntropy, err := metric.Evaluate(rows, metric.Options{Resamples: 1, CSF: "negent"})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "aurc by negent", l.NegEnt.AURC(), byEntropy.AURC, cell)
		if gotN, _ := s.Seen.Total(); gotN != n ||
			math.Abs(s.Seen.MSP.MeanConfidence()-l.Scores.MeanConfidence()) > exact {
			t.Errorf("seen: %d rows of mean confidence %v", gotN, s.Seen.MSP.MeanConfidence())
		}
	}
}
