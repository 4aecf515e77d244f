// Package npy reads and writes NumPy arrays: .npy files, and .npz files, which are archives of them.
//
// An [Archive] lists arrays and finds one by name. An [Entry] is an array whose elements are still in the file: they
// can be read at once ([Entry.Read]), run by run ([Entry.Each]), or where they lie ([Entry.Offset]). An [Array] is in
// memory, in row-major order, and converts its elements. [Writer] writes what numpy.savez would. Tests and benchmarks
// read whole files of numbers with [ReadFile] and [ReadArchive].
//
// Numbers of all widths in both byte orders, booleans, times and text are read; objects and structures are refused. A
// file may hold anything: no memory is taken by a shape that the file's bytes do not bear out. The package knows no
// array by name: that is the business of arrowio/table and of trainer/dataset.
package npy
