// Package head has the classifier heads that are trained: linear, and a bottleneck of two layers with ReLU between.
//
// A [Head] is its layers' weights and biases in float32. A [Pass] runs it forward and backward on batches of rows, with
// the matrix products of a [GEMM]; on amd64 the steps between products are vector code with the bits of the plain one.
// Initial weights come from package philox.
//
// Backends, recipes and artefacts take heads from here. The package must not know losses, optimisers or rows.
package head
