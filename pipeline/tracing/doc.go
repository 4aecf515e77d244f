// Package tracing follows batches on their way through the process: a trace has a span for each step of a Kafka record,
// from its time in the log to the outputs that it became part of.
//
// A [Tracer] decides which records are followed. A [Lane] is the part of it that one task uses: it knows the record at
// hand, and which records wait for a pane or a checkpoint. Between processes a trace goes on by the header of
// [Header] (W3C Trace Context). Nothing here is in a checkpoint or decides anything: without a tracer every result is
// the same, and after a crash the traces that were under way end.
//
// It must not know what a record means, nor where spans go. A nil Lane does nothing.
package tracing
