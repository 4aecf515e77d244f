// Package kafkaio connects the pipeline to Kafka through segmentio/kafka-go.
//
// It reads in two ways. A [Source] merges the co-partitioned topics of one partition number for a task, from the
// offsets of its checkpoint, and can be stopped by a [Gate]. [Tail] reads topics that every process needs whole
// (calibrators, requests, heads), from their start and for ever; a [Log] is one partition of such a topic. Both see
// committed records only, and try again until the broker answers.
//
// A [Sink] writes messages to the topics of their streams. A [Group] assigns partitions to processes and tells each
// when to begin and end; [Committed] and the group's commits keep its offsets. [Store] keeps checkpoints in a compacted
// topic, with their files in parts.
//
// The package knows Kafka's protocol and pipeline's contracts. It must not know what records mean: it hands out bytes,
// with their topic, partition and offset.
package kafkaio
