package unlabelled_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/detect/unlabelled"
)

// With 100 rows on each side and 10 bins PSI is .18 on average without any drift: the customary limit of .1 says
// nothing.
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
