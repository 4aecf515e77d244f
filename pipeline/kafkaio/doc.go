// Package kafkaio connects the pipeline to Kafka through segmentio/kafka-go: sources that read given partitions
// from given offsets, a sink, and the consumer groups that assign partitions to processes.
package kafkaio
