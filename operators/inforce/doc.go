// Package inforce says which rows a published calibrator serves, by their event time and the hash of their id.
//
// Two ask it: the operator that writes the calibrated stream (operators/apply), and the model task that scores sampled
// rows by what a server would have used (operators/model/stage). They must agree on every row, so the answer is a
// function of the Period and the row alone.
//
// The package knows periods and shares of ids. It must not know a calibrator, a stream or a clock.
package inforce
