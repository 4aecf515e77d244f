package unlabelled_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
)

// With 100 rows on each side and 10 bins PSI is .18 on average without any drift: the customary limit of .1 says nothing.
func ExampleCompare() {
	ref := []float64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}
	cur := []float64{14, 7, 12, 8, 10, 13, 6, 9, 13, 8}
	d, err := unlabelled.Compare(ref, cur, .05)
	if err != nil {
		panic(err)
	}
	fmt.Printf("PSI %.2f, without drift %.2f, threshold %.2f\n", d.PSI.Value, d.PSI.Null, d.PSI.Threshold)
	// Output:
	// PSI 0.07, without drift 0.18, threshold 0.34
}

func ExampleLabelShift() {
	joint := []float64{ // prediction by class, of 1,000 labelled rows
		450, 50,
		50, 450,
	}
	now := []float64{260, 740} // predictions, labels not known yet
	s, err := unlabelled.LabelShift(joint, now)
	if err != nil {
		panic(err)
	}
	fmt.Printf("share of class 1 is %.2f, accuracy %.2f\n", s.Shares[1], s.Accuracy)
	// Output:
	// share of class 1 is 0.80, accuracy 0.90
}
