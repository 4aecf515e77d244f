// Package validate is the first stage of a shard: rows that cannot be right take no part.
//
// A row is rejected where its event time, its label or its number of classes cannot be, where the join could not find
// it again, and where it names a model version more than the bounds allow. The message that held it becomes one dead
// letter, which names the reasons and the rows; the good rows of the message go on. What the decoder has rejected is
// reported with the rest.
//
// The operator knows the declared numbers of classes, and those that people have ordered. Those of other model versions
// it learns from the messages: a version is undecided until three messages agree and lead by two, and until then rows
// of every number go on, each in sums of its own, of which the model task keeps those of one. The versions that it
// knows, what it has learnt of them, and how many it may still take are all of its state. It must not know labels that
// are to come, nor anything of other rows. Batches come from the decoder of package arrowio, and go to the join with
// the reasons of rejected rows.
package validate
