// Package archivetest makes small files of the archive for the tests of packages that read them: the bytes, and
// the rows that a reader must find in them. Only tests of arrowio use it.
package archivetest
