// Command go is a minimal producer: it sends one batch of logits with ids, then their labels, to plumbline's topics.
//
// It uses the package client. Without it, Arrow, Kafka and docs/schema.md are enough.
package main
