// Package gorgonia is a backend on the CPU: the head is an expression graph of gorgonia, which derives the gradients,
// with the losses of package loss as one op whose gradient is their analytic one.
//
// A graph is made for a size of mini-batch and a way of masking, and kept; its ops compute the rows that a mini-batch
// has, so a smaller last one costs no more than its rows. Parameters are the head's own memory and gradients the
// solver's: nothing is copied between them and the graph.
//
//	X ──▶ layer, ReLU ──▶ layer ──▶ loss
//	       ▲   ▲           ▲  ▲
//	 W ─▶ mask b     W ─▶ mask b
//
// Five things are not gorgonia's own, for these reasons: its solvers multiply the velocity, not the weights, for L2
// decay and know no decoupled decay, so [step] implements its Solver interface by package optim; its LogSoftMax drifts
// and its ReLU has gradient 1 at 0; its product of a mask cannot leave the gradient unmasked; its Mul takes new
// memory for every product and gradient of every mini-batch, clears it, and knows no bias, which was a quarter of an
// epoch of 512–512–100; and its tape machine changes threads, so [machine] implements its VM. Loss, layers and masks
// are ops with symbolic gradients; products are those of its BLAS, which [Backend].GEMM takes the place of.
package gorgonia
