package acc_test

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/metric"
)

// Two panes are filled apart and merged; the order does not matter.
func Example() {
	total, err := acc.New(acc.Config{K: 3})
	if err != nil {
		panic(err)
	}
	p := make([]float64, 3)
	for pane := range 2 {
		s, _ := acc.New(total.Settings())
		for y := range 3 {
			z := []float32{2, 0, float32(pane)}
			row, _ := kernel.Logits(z, p)
			err := s.Label(row, p, acc.Truth{Class: y, NLL: kernel.NLL(row, z, y, false), Weight: 1,
				Served: math.NaN()})
			if err != nil {
				panic(err)
			}
		}
		if err := total.Merge(s); err != nil {
			panic(err)
		}
	}
	n, _ := total.Labelled.Total()
	bins, _ := total.Labelled.MSP.Bins(15)
	fmt.Printf("%d rows, accuracy %.3f, ECE %.3f\n", n, total.Labelled.Scores.Accuracy(), metric.ECE(bins))
	// Output: 6 rows, accuracy 0.333, ECE 0.393
}
