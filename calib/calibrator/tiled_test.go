package calibrator_test

import (
	"math"
	"testing"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/testsize"
)

// TestTemperatureOfTiledTables: a table over and over has the T of the table; so many rows of float32 go by blocks and
// a sample, and of float64 by a sample.
func TestTemperatureOfTiledTables(t *testing.T) {
	testsize.Slow(t)
	const scores = 1<<18 + 1000
	for _, k := range []int{2, 10} {
		for _, table := range sweepTables(k) {
			o := calibrator.Options{Probs: table.probs}
			narrow := make([]float32, len(table.z))
			rounded := make([]float64, len(table.z))
			for i, v := range table.z {
				narrow[i] = float32(v)
				rounded[i] = float64(narrow[i])
			}
			want, report, err := calibrator.FitTemperature(calibrator.NewData(rounded, k, table.y, nil), o)
			if err != nil {
				t.Fatalf("%s: %v", table.name, err)
			}
			var z32 []float32
			var z64 []float64
			var y []int32
			for len(z32) < scores {
				z32, z64, y = append(z32, narrow...), append(z64, rounded...), append(y, table.y...)
			}
			if table.probs && hasZero(narrow) { // a zero is the least of its type
				want, report, err = calibrator.FitTemperature(calibrator.NewData(narrow, k, table.y, nil), o)
				if err != nil {
					t.Fatal(err)
				}
			}
			got, r, err := calibrator.FitTemperature(calibrator.NewData(z32, k, y, nil), o)
			compareTiled(t, table.name+", float32", got, r, err, want, report)
			if table.probs && hasZero(narrow) {
				continue
			}
			got, r, err = calibrator.FitTemperature(calibrator.NewData(z64, k, y, nil), o)
			compareTiled(t, table.name+", float64", got, r, err, want, report)
		}
	}
}

func hasZero(p []float32) bool {
	for _, v := range p {
		if v == 0 {
			return true
		}
	}
	return false
}

func compareTiled(t *testing.T, what string, got calibrator.Temperature, r calibrator.FitReport, err error,
	want calibrator.Temperature, w calibrator.FitReport) {
	t.Helper()
	if err != nil || r.OnBound != w.OnBound || r.Flat != w.Flat || math.Abs(math.Log(got.T()/want.T())) > 2e-6 {
		t.Errorf("%s: got T %v, %+v, %v, want %v, %+v", what, got.T(), r, err, want.T(), w)
	}
	if math.Abs(r.NLLAfter-w.NLLAfter) > 2e-6*(1e-3+w.NLLAfter) ||
		math.Abs(r.NLLBefore-w.NLLBefore) > 2e-6*(1e-3+w.NLLBefore) {
		t.Errorf("%s: got NLL %v, before %v, want %v, %v", what, r.NLLAfter, r.NLLBefore, w.NLLAfter, w.NLLBefore)
	}
}
