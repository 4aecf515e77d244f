// Command ptx translates the PTX of package cuda into C++ for the stand-in of testdata/fakecuda, so that tests without
// a device run the text that a driver would get, and not the source that it was made of:
//
//	go run ./trainer/backend/cuda/ptx kernels.ptx > ptx.inc
//
// It knows the instructions that clang makes of our kernels and refuses others by their line. Every access to memory,
// fma, setp and barrier becomes a call of testdata/fakecuda/ptx.h with the number of its line: there it is checked, and
// there a test can change it.
package main
