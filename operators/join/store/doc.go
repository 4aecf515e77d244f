// Package store keeps rows in order of arrival on disk and finds them by id: the older part of what waits in a
// join.
//
// Rows go into segments, one after the other. The newest segment is in memory; a full one becomes a file that never
// changes again, named by a hash of its bytes. What changes later is in memory: a state of two bits a row, and an
// index of 13 to 19 bytes a row. A segment whose rows have all gone is removed, so a row is written once and never
// moved: rows leave in about the order in which they came.
//
//	append ──▶ open segment (memory) ──full──▶ file ──every row gone──▶ removed
//	             │                               │
//	             └── in a checkpoint: its bytes  └── in a checkpoint: its name
//
// That is why this is no general key-value store. In a log-structured merge tree every row is rewritten at each level
// and deleted by a further record, and a checkpoint kept elsewhere gets all those rewritten files again; here the files
// of a checkpoint are those of the one before, and the full segments since. Nothing is recovered from the directory
// itself: it belongs to one process and one store, and a checkpoint is the only thing that outlives them.
//
// A Store is used by one goroutine.
package store
