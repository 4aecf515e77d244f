// Command row generates the vector paths of calib/kernel: AVX-512, 16 lanes in one register, and AVX2 with FMA, the
// same 16 lanes in two. `make generate` runs it. The order of operations is that of kernel's plain Go path.
//
// It reads nothing and writes the assembly and its Go declarations. It must not import the package that it writes.
package main
