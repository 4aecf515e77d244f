// Package join brings predictions and their labels together. It is the second stage of a shard.
//
// Predictions pass on as they come, and wait for their label; labels wait for their prediction. Where the two meet, the
// stages behind get a labelled batch: the prediction's row with the label and its time. A repeat of a prediction is
// known for what it is and rejected, and a second label is a correction, which is counted and changes nothing.
//
//	message ──▶ buffer of what waits ──▶ labelled batches
//	             │   latest rows: memory
//	             │   older rows: package store, files that never change
//	             └── what has joined: a queue of ids (store.Joined)
//
// What the join does must not depend on where a row waits. Whether a prediction and a label join depends on their event
// times, as long as the bounds on rows are not hit: all that is pushed out, expired or never found is counted, so that
// the counts of a shard add up (pipeline.Unaccounted).
//
// The package knows ids, times, labels and the columns that come back with a labelled row. It must not know what the
// rows are for: no statistic, no calibrator, no file format. Its state is in checkpoints, rows on disk as files by
// reference.
package join
