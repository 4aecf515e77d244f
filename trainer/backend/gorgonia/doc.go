// Package gorgonia is a backend on the CPU: the head is an expression graph of gorgonia, which derives the gradients,
// with the losses of package loss as one op whose gradient is their analytic one.
//
// The package knows gorgonia's graphs and how to run them. It must not know recipes, jobs or files. A backend.Problem
// comes from the caller; parameters, losses and measurements go back through backend.Session.
//
// A graph is made for a size of mini-batch and a way of masking, and kept; its ops compute the rows that a mini-batch
// has, so a smaller last one costs no more than its rows. Parameters are the head's own memory and gradients the
// solver's: nothing is copied between them and the graph.
//
//	X ──▶ layer, ReLU ──▶ layer ──▶ loss
//	       ▲   ▲           ▲  ▲
//	 W ─▶ mask b     W ─▶ mask b
//
// Loss, layers and masks are ops with symbolic gradients; products are those of gorgonia's BLAS, which [Backend].GEMM
// replaces. Five things are not gorgonia's own, for these reasons:
//
//   - Its solvers multiply the velocity, not the weights, for L2 decay and know no decoupled decay: [step] implements
//     its Solver interface by package optim.
//   - Its LogSoftMax drifts, and its ReLU has gradient 1 at 0.
//   - Its product with a mask cannot leave the gradient unmasked.
//   - Its Mul takes new memory for every product and gradient of every mini-batch, clears it, and knows no bias: a
//     quarter of an epoch of 512–512–100.
//   - Its tape machine changes threads twice a mini-batch, which doubles the time of 512–100: [machine] implements its
//     VM.
//
// What is left of gorgonia is nodes, their sort, and symbolic differentiation. An epoch takes 0.92 to 1.09 of the time
// of backend.Go (bench/results/train-speed.md); the library adds 24 s of compiling and 6.6 MB.
package gorgonia
