// Package stage holds what the stages of the model task share: the label pane that they observe, its key and version,
// the calibrators in force, the state of an alert, and the interface of a stage.
//
// The model task (package operators/model) merges the cells of all shards into one Pane for each key. A key is a whole
// model version or one of its slices. The task scores the sampled rows of the pane with the calibrators in force and
// hands the pane to every stage, in the order of its table. When all keys of a version have observed the pane, the task
// closes it for the version, again stage by stage. Alarms and rules are decided over all slices together, alerts are
// settled, and refits decide. Every decision takes effect at the end of the pane.
//
// A stage knows its own state and what this package holds. It must not know another stage, the task, Kafka, or the
// clock. It publishes only through Env.Emit, so that every output enters the ledger of its key; snapshots alone are
// published without, and may be left out. Its state encodes everything that it keeps; equal states give equal bytes.
package stage
