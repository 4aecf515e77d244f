// Package engine wires the product together: from one configuration it builds the shards, the model tasks and
// everything around them, and runs them against brokers, files or topics.
//
// An [Engine] builds shards and model tasks from a configuration. [Engine.Run] joins the consumer groups, follows the
// topics that every process needs, fills the history and serves the page, the API and the metrics. Each of these is a
// type of its own, which knows no other but those that it is given: [builder], [view], [process], [past], [server], and
// in a run [follower], [notifier], [topicsWatch] and, upon one [host], [splitter], [shardStage] and [modelStage].
// A [Replay] drives the same shards and one model task over files or a range of the topics, without a broker in
// between. Commands, tests and benchmarks all use this wiring.
//
// The data comes from pipeline sources and goes to pipeline sinks; what the model tasks put out is shown only after the
// sink has taken it. The package must not know flags or how results are printed (cmd/plumbline), nor anything that a
// single operator knows: it only hands configuration over.
package engine
