// Package arrowio is plumbline's wire schema: what a message of the logits and labels topics means.
//
// [Decoder.Decode] turns the value of one Kafka record, an Arrow IPC stream, into [Batch] values: typed
// slices, one entry a row, with the scores as one row-major N×K slab. A message that cannot be
// trusted is refused as a whole with a [DecodeError], and a row that cannot be used is marked in
// [Batch.Reject]; both end in the dead-letter topic, neither stops a shard. The bytes are read by package
// wire, which no message can make allocate more than a small multiple of its own size.
//
// [EncodePredictions], [EncodeLabels] and [EncodeCalibrated] write messages; [Splitter] splits them. Whole files are
// the business of package table. docs/schema.md is the schema for producers.
//
// Bytes come from package pipeline and from web/calibrate. Batches go to the operators, which must not change them. The
// package knows the names and meanings of columns. It must not know Kafka, what becomes of a batch, or what a
// calibrator is.
//
//	d := arrowio.NewDecoder(arrowio.Options{Slices: []string{"region"}})
//	batches, err := d.Decode(record.Value, origin, arrowio.Predictions)
package arrowio
