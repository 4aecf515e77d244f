package reference_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/detect/reference"
	"github.com/plumbline/plumbline/calib/metric"
)

func ExampleCompare() {
	bins := func(right float64) reference.Window { // 1,000 rows at confidence .9
		return reference.Window{Bins: []metric.Bin{{}, {N: 1000, W: 1000, SumC: 900, SumA: right}}}
	}
	d, err := reference.Compare(bins(895), bins(850))
	if err != nil {
		panic(err)
	}
	fmt.Printf("accuracy %+.3f (%+.3f to %+.3f)\n", d.Accuracy.Difference, d.Accuracy.Lo, d.Accuracy.Hi)
	fmt.Println("curve changed:", d.Curve[1].PHolm < .05)
	// Output:
	// accuracy -0.045 (-0.074 to -0.016)
	// curve changed: true
}
