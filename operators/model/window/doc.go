// Package window keeps the windows of a key and publishes their snapshots.
//
// A time window covers [end - size, end) of prediction time. Its sums fill as labels come, until the label panes are
// far enough past its end; then it is final. A row window covers the latest whole label panes with enough labelled
// rows. It slides or tumbles. Each window keeps two sums: the rows as the shards sent them, and the sampled rows as the
// calibrators in force score them.
//
// At the end of a label pane the stage computes the metrics of every window that is due (metrics.go), lets other stages
// add their part (stage.Key.Shows), and emits the snapshot. It decides nothing.
package window
