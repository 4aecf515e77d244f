// Package ingest takes predictions and labels over HTTP: JSON, NDJSON or Arrow IPC, for teams whose servers have no
// Kafka client, and OpenTelemetry's logs and spans, whose attributes are columns.
//
// A request is checked as a record would be (package pipeline/inputs), written to Kafka, and answered when that has it:
// 200 means that the rows are durable, any other answer that they may be sent again. An id counts once, so a repeat
// does no harm. What is in flight is bounded; who sends more is told to wait.
//
// The package knows HTTP and formats. It must not know topics, partitions, or who may send: package web asks that.
package ingest
