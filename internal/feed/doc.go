// Package feed turns rows into the sequence of Kafka messages that a model server and its label source would send.
// `plumbline produce`, `plumbline replay FILE` and `plumbline demo` all send what it makes.
//
// Rows come from a [Source]: a table in memory ([Rows]) or one that computes them on the fly. [New] and [NewSequence]
// give every row an id, an event time and a label delay, split the rows by partition, and [Feed.Next] yields
// Arrow messages until io.EOF:
//
//	rows.Source(order) ─▶ event times, ids ─▶ pending rows, one list a (stream, partition) ─▶ Message
//	                          └─▶ label heap ──┘
//
// The sequence depends on the rows and the options alone: no clock, no unseeded randomness. So a produced stream and
// a replayed file give the same statistics. The package knows rows and messages. It must not know who sends them
// (package producer) or reads them (the engine's replay).
package feed
