// Package repartition splits the records of a topic, under any key and in any format of inputs, by the ids of the rows
// into messages for the partitions of the topic that shards read. It is no stage of a shard: pipeline.Relay runs it
// before.
//
// What becomes of a message depends on the message and the configuration alone, and each part says in its headers which
// message it was made of (pipeline.Provenance). Records of few rows in other formats than Arrow that are at hand
// together become one message for each partition, with the offset of each row (together.go). So the converter has no
// state that lasts: it writes at least once, and the shard skips what it has taken. It also announces when the source
// is exhausted, so that a silent source holds back no watermark, and withdraws this before it writes further rows.
//
// The package knows the hash of Kafka's default partitioner and the splitter of package arrowio. It must not know what
// rows mean: what cannot be decoded is a dead letter, whole.
package repartition
