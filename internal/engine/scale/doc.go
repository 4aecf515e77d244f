// Package scale lets a deployment get more shards while its stream goes on.
//
// An order is a plan in the checkpoint store, which all processes read. Each step of it is known by what is in the
// store, so any process may end at any point, and another does the rest:
//
//	plan     every shard seals its state, and what others take of it is copied beside
//	sealed   all copies are there: whoever sees it writes the plan of the new number, with what was taken
//	growing  every new shard makes its first checkpoint of the copies; the topics are split by id for them
//	done     all have: the copies go
//
// The package knows the plan and its keys in the store. It must not know how tasks are run, nor what is in a state.
package scale
