// Package recordset reads the records of a fetch response within bounds.
//
// In comes the record set as a broker answers it: record batches, and messages of the two formats before Kafka 0.11.
// Out go the records, one after the other, as they are decompressed: what has been handed out is all that is held,
// but for the window of the codec. A record or a batch that would take more than [Limits] allow is handed out as a
// refusal with its offsets, and so is one that cannot be read although its checksum is right. Control batches and
// records of aborted transactions are left out.
//
// The package knows the bytes alone. It must not know topics, connections or what a record means.
package recordset
