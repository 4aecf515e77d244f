// Package validate is the first stage of a shard: rows that cannot be right take no part.
//
// A row is rejected where its event time, its label or its number of classes cannot be, and where the join could not
// find it again. The message that held it becomes one dead letter, which names the reasons and the rows; the good rows
// of the message go on. What the decoder has rejected is reported with the rest.
//
// The operator knows the declared numbers of classes and learns those of other model versions from their first rows,
// which is all of its state. It must not know labels that are to come, nor anything of other rows. Batches come from
// the decoder of package arrowio, and go to the join with the reasons of rejected rows.
package validate
