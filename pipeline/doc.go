// Package pipeline is the runtime. A shard reads one partition of the logits and labels topics, drives a
// chain of operators over the decoded batches, and saves offsets, operator states and finished panes in one
// checkpoint; the panes become visible only after the checkpoint that contains them is durable. A model task
// reads one partition of the panes topic, which is a complete, ordered log of everything it decides upon.
// Both stages run as ordinary Kafka consumer groups (package kafkaio) or in one process over files (replay).
package pipeline
