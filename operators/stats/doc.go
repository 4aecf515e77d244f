// Package stats is the last stage of a shard: sums by model version, slice value, label pane and prediction pane.
//
// A prediction counts as seen in the pane of its event time, a labelled row as labelled in the pane of its label's
// time. When the watermark has passed the end of a label pane, its cells go to the outbox, once, never revised: rows
// that come later go as late cells with the next ones. Sums are calib/acc.Set, which merge exactly, so that the model
// task gets the same from any number of shards, and from any number of parts: when cells take too much memory, all that
// are there go out at once.
//
// The stage walks label panes, never prediction panes: a prediction pane fills up for as long as labels come.
//
// Where a slice column has more values than there are slots, those with the least hashes have their own cells and the
// rest are pooled (package slicing). So all shards choose the same values without a message to each other.
//
// The package knows panes, keys and sums. It must not know windows, rules or calibrators: those are the model task's.
// Its state is the open and the late cells.
package stats
