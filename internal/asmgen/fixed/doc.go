// Command fixed generates the vector paths of calib/kernel/fixedpoint; `make generate` runs it.
//
// Every step is a float64 product or sum rounded on its own, a fused multiply-add, or an exact integer step, in the
// order of the plain Go path: all paths give the same bits.
//
// It reads nothing and writes the assembly and its Go declarations. It must not import the package that it writes.
package main
