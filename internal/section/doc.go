// Package section writes the parts of a document that a program makes: what stands between two marks, HTML comments
// that name it.
//
// Text comes from the generators of docs/ and from benchmarks, and goes into a file whose other lines stay as they are.
// The package knows nothing of what the text says.
package section
