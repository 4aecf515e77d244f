// Package seglog is a log of Kafka record batches on disk: one partition, in segment files.
//
// A batch is on disk, synced, before Append returns and before Read gives it out. A crash at any moment loses nothing
// that Append has returned; what it leaves half written at the end is cut off by the next Open. A damaged batch
// with a whole one after it is no such end, and Open refuses. A disk that is full refuses, and the log goes on when
// there is room; a disk that fails to sync ends it, because nobody can say what is on such a disk.
//
// A segment is the batches as they go over the wire, and its name is the offset of the first. The last segment stays,
// empty if need be, so that offsets never begin anew. The package knows batches; it must not know topics or requests.
package seglog
