// Package archivefile is the format of the archive: Arrow IPC files of labelled rows with features.
//
// The archive operator collects [Rows] of one model version and one shape and encodes them as segments
// ([EncodeSegment]): Arrow streams of one record batch, which checkpoints refer to by their SHA-256. A complete [File]
// is a list of segments with what its name and its head say. The archive sink joins the segments to one Arrow IPC file
// ([Write]); the trainer and the sink's sweep read the head of a file that may hold anything ([ReadInfo]). Equal rows
// give equal bytes.
//
// Features and labels of a file are read by package arrowio/table, which reads other files too. The package knows
// nothing of operators, checkpoints and stores. docs/schema.md describes the format.
package archivefile
