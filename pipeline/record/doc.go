// Package record has the records that plumbline publishes, as Go values: snapshots, alerts, calibrators, requests for
// heads, heads and verdicts, orders, and the decisions topic's envelope around them.
//
// The model task and the trainer make them. They travel through the process as values, and are encoded once, as JSON,
// when they become a pipeline.Message. History, page, metrics and log take the values; readers of topics decode them
// here (Decode, DecodeHeads).
//
// The JSON is a contract (docs/schema.md): fields are added, never renamed. A Time is an integer in the process, and
// RFC 3339 in UTC in JSON. Shares are fractions, not percent. What is undefined or was not computed is null.
//
// The package knows the names and meanings of fields. It must not know how a number in them is computed, nor Kafka.
package record
