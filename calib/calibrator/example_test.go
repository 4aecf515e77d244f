package calibrator_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// Eight rows of two classes, all sure by a gap of 4, two of them wrong.
var (
	exampleZ = []float32{4, 0, 4, 0, 0, 4, 4, 0, 4, 0, 0, 4, 0, 4, 4, 0}
	exampleY = []int32{0, 0, 1, 1, 0, 1, 1, 1}
)

func ExampleFit() {
	c, report, err := calibrator.Fit("temperature", calibrator.NewData(exampleZ, 2, exampleY, nil),
		calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Describe())
	fmt.Printf("NLL %.3f → %.3f, converged %v\n", report.NLLBefore, report.NLLAfter, report.Converged)
	p := make([]float64, 2)
	c.Apply(p, []float64{4, 0})
	fmt.Printf("%.2f\n", p)

	_, _, err = calibrator.Fit("temperature", calibrator.NewData(exampleZ, 2, []int32{0, 0, 2, 0, 0, 0, 0, 0}, nil),
		calibrator.Options{})
	fmt.Println(err)
	// Output:
	// temperature scaling, T = 3.641
	// NLL 1.018 → 0.562, converged true
	// [0.75 0.25]
	// fit temperature: row 2: label 2, allowed 0..1
}

func ExampleFit_lossScaling() {
	c, report, err := calibrator.Fit("temperature+cls", calibrator.NewData(exampleZ, 2, exampleY, nil),
		calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Describe())
	fmt.Printf("%d rounds, class weights %.2f\n", report.LossScaling.Rounds, report.LossScaling.Weights)
	// Output:
	// temperature scaling, T = 5.164
	// 2 rounds, class weights [0.42 1.58]
}

func ExampleApplyRows() {
	c, _, err := calibrator.Fit("platt", calibrator.NewData(exampleZ, 2, exampleY, nil), calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	probs := []float32{0.9, 0.1, 0.4, 0.6} // two rows of probabilities
	err = calibrator.ApplyRows(c, probs, probs, 2, true)
	fmt.Printf("%.2f %v\n", probs, err)
	err = calibrator.ApplyRows(c, probs, probs, 3, true)
	fmt.Println(err)
	// Output:
	// [0.63 0.37 0.46 0.54] <nil>
	// apply platt: 4 scores, allowed are whole rows of 3
}

func ExampleMethods() {
	for _, m := range calibrator.Methods() {
		if m.KeepsArgmax && m.Scalable {
			fmt.Printf("%s (%s), %d parameters\n", m.Title, m.Reference, m.Parameters(10))
		}
	}
	// Output:
	// temperature scaling (Guo et al., ICML 2017), 1 parameters
	// ensemble temperature scaling (Zhang, Kailkhura, Han, ICML 2020), 3 parameters
	// parameterised temperature scaling (Tomani, Cremers, Buettner, ECCV 2022), 86 parameters
}

func ExampleFitTemperature() {
	t, report, err := calibrator.FitTemperature(calibrator.NewData(exampleZ, 2, exampleY, nil), calibrator.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := make([]float64, 2)
	t.Apply(p, []float64{4, 0})
	fmt.Printf("T %.3f, NLL %.3f → %.3f, p %.2f\n", t.T(), report.NLLBefore, report.NLLAfter, p)
	// Output: T 3.641, NLL 1.018 → 0.562, p [0.75 0.25]
}

func ExampleEncode() {
	c, err := calibrator.NewTemperature(2.03)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := calibrator.Encode(c)
	fmt.Println(string(text), err)
	// Output: {"version":1,"method":"temperature","temperature":2.03} <nil>
}

func ExampleDecode() {
	c, err := calibrator.Decode([]byte(`{"version":1,"method":"temperature","temperature":2}`))
	fmt.Println(c.Describe(), err)
	_, err = calibrator.Decode([]byte(`{"version":1,"method":"temperature","temperature":-2}`))
	fmt.Println(err)
	// Output:
	// temperature scaling, T = 2 <nil>
	// calibrator format: temperature: -2, allowed 0.05..20
}
