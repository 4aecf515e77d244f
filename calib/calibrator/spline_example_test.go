package calibrator_test

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// tooSure returns rows of two classes with confidences 0.6, 0.61, …, 0.99, each of which is right as often as half its
// distance from 1/2 says.
func tooSure() (z []float64, y []int32) {
	for i := range 4000 {
		c := 0.6 + 0.01*float64(i%40)
		z = append(z, math.Log(c/(1-c)), 0)
		wrong := int32(1)
		if float64(i/40) < 100*(0.5+(c-0.5)/2) {
			wrong = 0
		}
		y = append(y, wrong)
	}
	return z, y
}

func ExampleFitSpline() {
	z, y := tooSure()
	c, _, err := calibrator.FitSpline(calibrator.NewData(z, 2, y, nil), calibrator.SplineSettings{},
		calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f → %.2f, %.2f → %.2f\n", 0.7, c.Map(0.7), 0.9, c.Map(0.9))
	// Output: 0.70 → 0.60, 0.90 → 0.70
}

func ExampleFitIntraOrderPreserving() {
	z, y := tooSure()
	c, report, err := calibrator.FitIntraOrderPreserving(calibrator.NewData(z, 2, y, nil), calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := make([]float64, 2)
	c.Apply(p, []float64{math.Log(0.9 / 0.1), 0})
	fmt.Printf("NLL %.3f → %.3f, p %.2f\n", report.NLLBefore, report.NLLAfter, p)
	// Output: NLL 0.748 → 0.641, p [0.69 0.31]
}

func ExampleFitMetaCal() {
	z, y := tooSure()
	c, _, err := calibrator.FitMetaCal(calibrator.NewData(z, 2, y, nil), calibrator.MetaCalSettings{Target: 0.2},
		calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := make([]float64, 2)
	for _, conf := range []float64{0.6, 0.9} {
		row := []float64{math.Log(conf / (1 - conf)), 0}
		c.Apply(p, row)
		fmt.Printf("%.2f: kept %v, p %.2f\n", conf, c.Accepts(row), p)
	}
	// Output:
	// 0.60: kept false, p [0.50 0.50]
	// 0.90: kept true, p [0.69 0.31]
}
