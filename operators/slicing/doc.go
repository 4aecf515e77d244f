// Package slicing has what the shards and the model task must agree on about the values of a slice column: the name of
// the pooled value, the order of values, how many of them a shard distinguishes in a label pane, and when slices have
// their panes.
//
// A shard (operators/stats) sees a part of the rows, so it chooses no value: it distinguishes those that come first in
// the order of Hash, and pools the others. The model task (operators/model/slice) has the cells of all shards, and
// chooses the heaviest. The order depends on the values alone, so no order of rows and no number of shards changes what
// is chosen.
//
// The package knows names of values. It must not know rows, cells or counts.
package slicing
