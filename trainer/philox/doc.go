// Package philox is the counter-based random number generator of training: initial weights, mini-batch orders, masks,
// mixup.
//
// A number is a function of (seed, stream, position) alone. So every backend draws the same numbers in any order and in
// parallel, and a training that goes on from a checkpoint gets the same bits. A [Stream] gives words by position, a
// [Source] one after the other.
//
// The package must not know what a number is for beyond its [Purpose]. It takes a seed from its callers and imports
// nothing of ours.
package philox
