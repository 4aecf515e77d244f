// Package join brings predictions and their labels together. It is the second stage of a shard.
//
// Predictions go on as they come, and a copy waits for the label; labels wait for their prediction. When the two meet,
// the next stages get a labelled batch: the prediction's row with the label and its time. A repeat of a prediction is
// recognised and rejected. A second label is a correction, which is counted and changes nothing.
//
//	message ──▶ buffer of what waits ──▶ labelled batches
//	             │   latest rows: memory
//	             │   older rows: package store, files that never change
//	             └── what has joined: a queue of ids (store.Joined)
//
// Results must not depend on where a row waits. Whether a prediction and a label join depends on their event times, and
// on the bounds on rows. Rows that are pushed out, expire or are never found are counted, so that the counts of a shard
// add up (pipeline.Unaccounted).
//
// The package knows ids, times, labels and the columns that come back with a labelled row. It must not know what the
// rows are for: no statistic, no calibrator, no file format. Its state is in checkpoints, rows on disk as files by
// reference.
package join
