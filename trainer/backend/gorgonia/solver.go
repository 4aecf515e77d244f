package gorgonia

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/optim"
)

// valueGrad is a parameter with its gradient.
type valueGrad struct{ value, grad *tensor.Dense }

// Value implements gorgonia.Valuer.
func (v valueGrad) Value() gorgonia.Value { return v.value }

// Grad implements gorgonia.ValueGrad.
func (v valueGrad) Grad() (gorgonia.Value, error) { return v.grad, nil }

// step is a gorgonia.Solver that takes steps of [optim.SGD].
type step struct {
	sgd      optim.SGD
	velocity [][]float32
	threads  int
}

func newStep(e backend.EpochPlan, velocity [][]float32, threads int) *step {
	return &step{e.SGD(), velocity, threads}
}

// Step implements gorgonia.Solver.
func (s *step) Step(model []gorgonia.ValueGrad) error {
	for i, m := range model {
		g, err := m.Grad()
		if err != nil {
			return err
		}
		backend.Step(s.sgd, s.threads, floats(m.Value()), floats(g), s.velocity[i])
	}
	return nil
}
