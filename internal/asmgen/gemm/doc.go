// Command gemm generates the vector paths of calib/calibrator/internal/gemm. `make generate` runs it.
//
// A tile of C stays in registers; every element takes its products by fused multiply-add in the order of the inner
// index, so that the shape of the tile does not matter: all paths give the same bits.
//
// It reads nothing and writes the assembly and its Go declarations. It must not import the package that it writes.
package main
