// Package apply writes the calibrated stream: each prediction with the probabilities that the calibrator in force at
// its event time gives. It passes batches on unchanged: no statistic depends on it, and it has no state.
//
// Published is the table of calibrators that all shards of a process share. It is filled from the calibrators topic,
// whoever published there, and holds for each model version the newest revisions and the canary; what was replaced for
// longer than event_time.forget_after is dropped. A row gets the newest revision in force at its event time, or the
// canary's where its id is in the canary's share; both rules are package inforce, which the model task asks too.
// Corrections between refits go on top, by their event time.
//
// The package must not know how a calibrator was found, nor when one is due. Messages go to pipeline.Out, which writes
// them before the checkpoint, so they may come twice.
package apply
