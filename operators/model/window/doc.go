// Package window keeps the windows of a key, and publishes their snapshots.
//
// A window by time is [end - size, end) of prediction time: sums over label panes, which fill up as labels come, until
// the label panes are so far past its end that it is final. A window by rows is the latest whole label panes with rows
// enough, sliding or tumbling. Sums are kept as they came from the shards, and as the calibrators in force make the
// sampled rows.
//
// At the end of a label pane the stage reads the metrics of every window that is due (metrics.go), lets other stages
// add what they know of it (stage.Key.Shows), and emits the snapshot. It decides nothing.
package window
