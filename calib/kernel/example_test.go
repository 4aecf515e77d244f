package kernel_test

import (
	"fmt"

	"github.com/plumbline/plumbline/calib/kernel"
)

func ExampleLogits() {
	z := []float32{2, 0, 1}
	p := make([]float64, len(z))
	row, ok := kernel.Logits(z, p)
	fmt.Printf("%v class %d conf %.4f margin %.4f nll %.4f\n", ok, row.Arg, row.Conf, row.Margin(),
		kernel.NLL(row, z, 2, false))
	// Output: true class 0 conf 0.6652 margin 0.4205 nll 1.4076
}

func ExampleProbs() {
	q := []float64{0.5, 0.25, 0.25}
	p := make([]float64, len(q))
	row, _ := kernel.Probs(q, p)
	fmt.Printf("conf %.2f entropy %.4f brier %.3f\n", row.Conf, row.Entropy, kernel.Brier(row, p[0]))
	// Output: conf 0.50 entropy 1.0397 brier 0.375
}
