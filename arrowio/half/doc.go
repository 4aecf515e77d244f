// Package half converts between float32 and IEEE 754 binary16, which Arrow calls float16.
//
// [Bits] and [Value] convert one number, [Encode] a slice. Features of messages, archives and checkpoints may be stored
// as binary16. The package knows the number format only: nothing of Arrow, of messages or of byte order.
package half
