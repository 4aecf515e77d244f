package shift_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/shift"
)

// Two classes, of which the model says each surely or unsurely: four symbols. The reference has as many rows of both
// classes; now the model says class 1 much more often.
func ExampleBBSE() {
	e, err := shift.BBSE(shift.Table{
		K:    2,
		Says: []int{0, 0, 1, 1},
		Joint: []float64{ // rows of the reference by symbol and label
			400, 20,
			60, 40,
			30, 60,
			10, 380,
		},
		Now: []float64{192, 88, 108, 612},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("share of class 1: %.2f ± %.2f, weight %.2f\n", e.Shares[1], e.SE[1], e.Weights[1])
	fmt.Printf("accuracy %.3f, from %.3f to %.3f\n", e.Accuracy, e.Lo, e.Hi)
	fmt.Printf("%.0f degrees of freedom, label shift rejected: %v\n", e.Fit.DF, e.Fit.P < .05)
	// Output:
	// share of class 1: 0.80 ± 0.02, weight 1.60
	// accuracy 0.888, from 0.857 to 0.919
	// 2 degrees of freedom, label shift rejected: false
}
