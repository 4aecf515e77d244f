// Command refit measures what refits do on drifting and stationary streams of real logits: how often one is published,
// whether it helps or hurts on the rows that follow, and the calibration error over the stream beside that of a fixed
// schedule and of every calibrator fitted once. There are two sets of streams: the method was chosen on one of them,
// the other was held out.
//
// It reads the shared data (../shared/data), and says so where that is absent. Refits are those of
// operators/model. Results of policies are kept in .cache/bench/refit; PLUMBLINE_DOCS=1 writes the tables to
// bench/results.
package main
