// Package archive is the stage of a shard that writes labelled rows with features to files, every row once. It follows
// the join.
//
// Rows gather in memory by model version and shape. A full record batch is encoded and goes to the work directory; with
// enough rows, bytes or event time the file is complete, and waits in the publish queue until a checkpoint has it. Then
// Config.Publish makes it visible, beside the shard and as often as it takes.
//
//	labelled batch ──▶ rows in memory ──▶ record batches (work directory) ──▶ publish queue ──▶ Publish
//
// Which rows make a file follows from the rows and the watermark alone, no clock. So after a crash the same checkpoint
// makes the same file again, under the same name. The state of a checkpoint is the rows in memory, and the record
// batches as files by reference.
//
// The package knows rows, files and the room for them. It must not know where files go: Publish is a function of
// sinks/archive. Without room the shard waits, or rows are dropped and counted, as configured.
package archive
