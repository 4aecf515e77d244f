// Package producer sends a feed to the logits and labels topics, as a model server and its label source would.
//
// [Send] writes each partition of a topic in the feed's order, waits for the acknowledgement of all of it, and spreads
// the rows over the wall clock where a rate is given. The package must not know how rows are made (package feed).
package producer
