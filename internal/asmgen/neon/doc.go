// Command neon writes calib/kernel/rows_arm64.s, the rows of package kernel by NEON: the operations of its
// plain Go, in the same order, for four rows at a time (fewer than 64 classes) or along a row. avo knows amd64 only,
// and Go's assembler few of NEON's floating-point instructions: those are written as words.
package main
