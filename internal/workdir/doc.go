// Package workdir makes directories for files that only one process needs: the rows of a join that do not fit into
// memory, the record batches of an archive file that is not complete. What must outlive the process is in a checkpoint.
//
// Beside each directory is a file that its process keeps locked. The next process that makes a directory of the same
// prefix removes those whose file is not locked. The package knows nothing of the files inside.
package workdir
