package cuda_test

import (
	"errors"
	"fmt"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// A head is trained on a device where there is one, and on the CPU otherwise.
func Example() {
	train := &data.Set{D: 2, K: 2, X: []float32{1, 0, 0, 1, 1, 0.2, 0.1, 1}, Y: []int32{0, 1, 0, 1}}
	p := backend.Problem{Train: train, Head: head.FreshLinear(2, 2, 1), Losses: []string{"ce"}, Batch: 2}
	s, err := new(cuda.Backend).Open(p)
	if errors.Is(err, backend.ErrUnsupported) {
		s, err = backend.Go{}.Open(p)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 20 {
		if _, err := s.Epoch(backend.EpochPlan{Rows: data.Rows(4), Batch: 2, LR: 0.5}); err != nil {
			fmt.Println(err)
		}
	}
	m, err := s.Measure(backend.TrainSet, backend.Weights{})
	fmt.Printf("accuracy %.1f, NLL %.2f, error %v\n", m.Accuracy, m.NLL, err)
	if err := s.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: accuracy 1.0, NLL 0.06, error <nil>
}
