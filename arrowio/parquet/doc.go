// Package parquet reads and writes the columns of Parquet files as Arrow records. It alone imports the Parquet library.
//
// [Open] reads a file's footer, [File.Records] the columns that are asked for, record by record: values and lists of
// values of all primitive types, in two or three levels, plain, by a dictionary, or delta encoded. Structs, maps and
// lists of lists are named and not read. [Write] writes a record.
//
// The library's own Arrow reader links Arrow's compute kernels and Flight with gRPC, which are more than the rest of
// this project. So the library reads the footer and frames and inflates the pages here; the package decodes levels and
// values itself. A file may hold anything. The footer is walked before the library sees it (thrift.go), a page's claims
// are checked before memory is taken for them (stream.go), codecs write no more than a page's claim (codec.go), and a
// file may expand to a bounded multiple of its size (parquet.go). What is left of the library's panics is recovered.
//
// The package knows Parquet and Arrow. It knows no column by name: package arrowio/table says which ones it wants, and
// makes tables of them.
package parquet
