// Package dirstore keeps the checkpoints of tasks in a directory, which may be on storage that several machines share.
//
//	DIR/KEY/checkpoint-<n>   the bytes of checkpoint n
//	DIR/KEY/journal-<n>      how the task got there from the checkpoint before
//	DIR/KEY/files/<hash>     the files that the checkpoints refer to
//
// A checkpoint is written under a temporary name, synced, and gets its name by a hard link. A link to a name that
// exists fails, on shared storage too: a number has one writer, and that is the fence between two processes that both
// take a task for theirs. The files that a checkpoint refers to are durable before it; they are linked where the work
// directory is on the same file system, and copied where it is not. The writer that won the number links the journal.
// Its bytes are durable before that under a temporary name, where they are found if the process ended between the two
// links.
//
// The package knows numbers, bytes and names. It must not know what a checkpoint holds beyond the files that it refers
// to, nor when one is due: package pipeline encodes checkpoints, asks for them and decides which cannot be used.
package dirstore
