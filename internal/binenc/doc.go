// Package binenc appends and reads the primitives of plumbline's binary formats (docs/format.md).
//
// Every value has exactly one encoding, so that equal states have equal bytes: varints are minimal, and
// Reader rejects the others. Reader never allocates more than the bytes that it was given justify.
//
// Checkpoints, panes and accumulators are written with it, and read from files and topics that may be damaged. It knows
// nothing of their contents; what a value may be, the caller says.
package binenc
