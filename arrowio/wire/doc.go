// Package wire reads Arrow IPC streams that may be hostile.
//
// The reader of the Arrow library trusts the lengths in a message: a few flipped bits make it ask for
// gigabytes, and running out of memory ends the process, which recover cannot catch. This package therefore
// parses the framing and the metadata itself and never allocates by a length that it has not compared
// with the bytes at hand:
//
//  1. [Next] cuts one encapsulated message off a stream, checking metadata and body lengths.
//  2. [ParseSchema] reads a schema message within [Limits] on fields, depth and name lengths.
//  3. [Schema.Batch] and [Schema.Dictionary] hand out the columns asked for as [Column]: byte slices into
//     the message, with every field node and buffer checked against the body and the schema.
//
// What a column's bytes mean (offsets, indices, values) is checked by the reader of the column; the
// helpers in values.go do it for strings and lists.
//
// The format is that of the Arrow Columnar Format 1.x, "Encapsulated message format" and "IPC Streaming
// Format", metadata versions 4 and 5, little endian. The package knows no column by name and no message by kind: that
// is for the packages of arrowio that read with it.
package wire
