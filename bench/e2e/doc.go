// Command e2e measures the whole path beside its limits and beside what a user might write instead, on the same topics
// of one broker, one process after the other:
//
//	plumbline    `plumbline run` with its default configuration
//	kafka-go     a consumer that throws the bytes away; plumbline's Kafka client
//	franz-go     the same with another client
//	perf-test    Kafka's own kafka-consumer-perf-test
//	python       consumer.py: confluent-kafka, pyarrow, numpy, a dict for the join
//	quixstreams  quix.py: the same in a framework
//
// What is compared is processor time, user and system, of the whole process, less that of the same process on a stream
// of a few rows: start-up is paid for once. Rounds are interleaved, and the least time of each counts.
//
// With -steady rows come as they happen, and what counts is the cores that plumbline takes meanwhile.
package main
