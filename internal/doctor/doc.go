// Package doctor looks at a deployment from outside, and says what is wrong and what to do about it.
//
// [Run] asks the brokers, reads the latest records of the inputs as a shard would, compares clocks, asks whether this
// build reads the checkpoints and a running process for its counts, and looks at the disk; it writes nothing but a file
// that it removes at once. Each [Finding] stands alone: a check that cannot be made says why, and the others go on. The
// package knows the configuration and what messages mean. It must not know how findings are printed.
package doctor
