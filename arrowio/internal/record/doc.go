// Package record builds Arrow records over slices that exist already, without copying them.
//
// The functions of arrays.go make arrays that view Go slices: [Fixed] of numbers, [List] and [Slab] of row-major N×K
// slabs, [Strings] and [Texts] of text. A [Builder] joins them under names and metadata, and [Encode] writes the record
// as an Arrow IPC stream. The arrays are valid as long as the slices are; the garbage collector frees both.
//
// Messages (package arrowio), tables (arrowio/table) and files of the archive (arrowio/archivefile) are written with
// it. The package knows Arrow's memory layout. It knows no column by name.
package record
