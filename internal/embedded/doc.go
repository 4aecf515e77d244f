// Package embedded is a Kafka broker of one process, for teams without Kafka: what `plumbline serve --embedded` stands
// on, so that everything else is the code that runs on Kafka.
//
// Records are in logs of this project's own (package seglog), which are synced before they are acknowledged. Topics,
// configurations, groups and committed offsets are kfake's, in its own files. Its records are not used: they are not
// safe against a crash while they are compacted, and are read into memory whole. Requests for records are answered
// here. Every other one is handed to kfake, and what changes topics is synced before the answer.
//
// The broker listens on loopback and knows no users. It must know nothing of plumbline's topics.
package embedded
