// Package engine wires the product together: from one configuration it builds the shards, the model tasks and
// everything around them, and runs them against brokers, files or topics.
//
// An [Engine] builds shards ([Engine.NewShard]) and model tasks from a configuration. [Engine.Run] joins the consumer
// groups, follows the topics that every process needs, fills the history and serves the page, the API and the metrics.
// A [Replay] drives the same shards and one model task over files or a range of the topics, without a broker in
// between. Commands, tests and benchmarks all use this wiring.
//
// The data comes from pipeline sources and goes to pipeline sinks; what the model tasks put out is shown only after the
// sink has taken it. The package must not know flags or how results are printed (cmd/plumbline), nor anything that a
// single operator knows: it only hands configuration over.
package engine
