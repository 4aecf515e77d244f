// Command go is a minimal producer: it sends one batch of logits with ids, then their labels, to plumbline's topics.
//
// It imports nothing of plumbline: what it needs is Arrow, Kafka and docs/schema.md.
package main
