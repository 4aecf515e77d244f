// Command vexp generates the vector paths of internal/vexp. `make generate` runs it.
//
// The steps are those of expGo, one for one, so that all paths give the same bits.
//
// It reads nothing and writes the assembly and its Go declarations. It must not import the package that it writes.
package main
