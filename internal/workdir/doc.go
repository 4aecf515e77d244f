// Package workdir makes directories for files that are worth something to one process only: the rows of a join that
// memory has no room for, the record batches of an archive file that is not complete. What must outlive the process is
// in a checkpoint.
//
// Beside each directory is a file that its process keeps locked. So the next process that makes a directory of the same
// prefix knows which of them belong to nobody, and removes them. The package knows nothing of the files inside.
package workdir
