// Package backend says what a device does in training, and has the reference that does it on the CPU.
//
// A [Session] owns parameters, velocities, features and labels, and runs whole epochs: forward, loss and its gradient,
// backward, masks, update. The host only schedules: which rows in which order, at what rate, with which masks. [Go] is
// the reference, in float32; package conformance has the test that every backend passes. [MiniBatch] and [Evaluator]
// are the parts that backends with rows in host memory share.
//
// A [Problem] comes from package recipe, with rows of package data and a head of package head. Losses, measurements and
// parameters go back to it. The package must not know why an epoch is run: no recipe, no job, no files.
package backend
