// Package worldtest runs shards and a model task without a broker: tests of both compare what they put out.
//
// A test encodes rows as lanes, the records of each shard by topic, and gives a World the functions that make a shard
// and a task. The World reads the lanes in an order that the test picks, keeps the log of panes between the two, takes
// checkpoints, and loses memory where the test asks for it. The package knows the contracts of package pipeline and
// no operator, so that tests inside of any operator can import it. Imported by _test.go files only.
package worldtest
