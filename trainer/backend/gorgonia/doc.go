// Package gorgonia is the default backend: the head is an expression graph of gorgonia, which derives the gradients and
// runs forward and backward on its tape machine, with the losses of package loss as one op whose gradient is their analytic one.
//
// A graph is made for a size of mini-batch and a way of masking, and kept; a smaller last mini-batch is filled up with
// rows of zeros that have no part in the loss. In the graph, weights lie as In×Out, so that a layer is the product X·W.
//
//	X ──▶ Mul ──▶ bias ──▶ ReLU ──▶ Mul ──▶ bias ──▶ loss
//	       ▲                         ▲
//	 W ─▶ mask                 W ─▶ mask
//
// Three things are not gorgonia's own, for these reasons: its solvers multiply the velocity, not the weights, for L2
// decay and know no decoupled decay, so [step] implements its Solver interface by package optim; its LogSoftMax drifts
// and its ReLU has gradient 1 at 0, so both are ops here; and its product of a mask cannot leave the gradient unmasked.
package gorgonia
