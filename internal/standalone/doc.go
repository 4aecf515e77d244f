// Package standalone is plumbline without Kafka: `plumbline serve --embedded DIR` and `plumbline migrate`.
//
// A directory holds the configuration, the broker's records (internal/embedded) and the state. Migration copies topics
// to a broker of the same names, partitions and offsets, so that the state stays what it is.
package standalone
