// Package inputs reads records as people have them: JSON, CloudEvents, payload logs of model servers, Avro, Protobuf.
//
// A [Config] is one entry of inputs: a topic, its format, and which field of a record is which of plumbline's columns.
// [New] compiles it once; [Decoder.Decode] then makes of a record what a producer that knows plumbline would have sent
// in its place: messages in Arrow (package arrowio). So whoever splits, decodes, validates and replays rows knows one
// format only, and a row is the same whatever it came in.
//
// A new format is a line of the table formats and a file with its decoder, which sets columns by the compiled paths.
// What records ask for is bounded before it is done. The package knows records and columns; it must not know Kafka's
// protocol, nor what becomes of a message.
//
//	d, err := inputs.New(cfg, inputs.Options{Slices: []string{"region"}})
//	messages, err := d.Decode(record)
package inputs
