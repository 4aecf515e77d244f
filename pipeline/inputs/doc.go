// Package inputs reads records as people have them: JSON, CloudEvents, payload logs of model servers, Avro, Protobuf.
//
// A [Config] is one entry of inputs: a topic, its format, and which field of a record is which of plumbline's columns.
// [New] compiles it once. [Decoder.Decode] turns a record into the messages in Arrow that a producer for plumbline
// would have sent (package arrowio). So the code that splits, decodes, validates and replays rows knows one format.
//
// A new format is a line of the table formats, which names what else belongs to it, and a file with its decoder, which
// sets columns by the compiled paths.
// The work that a record asks for is bounded before it begins. The package knows records and columns; it must not know
// Kafka's protocol, nor what becomes of a message.
//
// JSON is read by a scanner of the package: on busy cores it takes 68 MB/s with the rows, where strict parsers of Go
// (jsontext) take 52 to 71 for the tokens alone, and the fast ones accept what is no JSON or recurse as deep as the
// sender likes.
//
//	d, err := inputs.New(cfg, inputs.Options{Slices: []string{"region"}})
//	messages, err := d.Decode(record)
package inputs
