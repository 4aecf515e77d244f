// Package validate is the first stage of a shard: it rejects rows that must be wrong.
//
// A row is rejected if its event time, label or number of classes is impossible, if it has no id to be joined by, or if
// its model version is over the bounds. The message that held it becomes one dead letter, which names the reasons and
// the rows; the good rows of the message go on. Rows that the decoder has rejected are reported with them.
//
// The operator knows the numbers of classes that are declared or ordered by a person. It learns those of other model
// versions from the messages: a version is undecided until three messages agree and lead by two. Until then rows of
// every number go on, each in sums of its own, and the model task keeps the sums of one number. The state is the
// versions that it knows, what it has learnt of them, and how many it may still take.
//
// Batches come from the decoder of package arrowio, and go to the join with the reasons of rejected rows. The package
// must not know labels that are still to come, nor what the rows are for.
package validate
