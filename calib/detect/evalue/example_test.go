package evalue_test

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/detect/evalue"
)

func ExampleEBH() {
	logE := []float64{math.Log(300), math.Log(2), math.Log(90), math.Log(35), math.Log(.1)}
	fmt.Println(evalue.EBH(logE, .05))
	// Output:
	// [0 2 3]
}

func ExamplePaired() {
	test, err := evalue.NewPaired(6.9, 0) // NLL with probabilities of at least e^-6.9
	if err != nil {
		panic(err)
	}
	rows := 0
	for ; test.LogE() < math.Log(20); rows++ {
		gain := .3
		if rows%3 == 0 {
			gain = -.2
		}
		if err := test.Add(gain); err != nil {
			panic(err)
		}
	}
	n, mean, _ := test.Gain()
	fmt.Printf("better after %d rows, mean gain %.2f\n", n, mean)
	// Output:
	// better after 320 rows, mean gain 0.13
}
