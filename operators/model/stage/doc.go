// Package stage is what the stages of the model task share: the label pane that they observe, the key and the version
// that it belongs to, the calibrators in force, the state of an alert, and the interface that makes a stage.
//
// The model task (package operators/model) merges the cells of all shards into a Pane for each key: a whole model
// version or one of its slices. It scores the pane's sampled rows by the calibrators in force, then hands the pane to
// every stage, in the order of its table. After all keys of the version have observed the pane, it closes the pane for
// the version, again stage by stage: alarms and rules are judged over all slices together, alerts are settled, refits
// decide. What a stage decides takes effect at the pane's end.
//
// A stage knows its own state and what is here. It must not know another stage, the task, Kafka, or the clock. All that
// it publishes goes through Env.Emit, so that the ledger of the key has it. Everything that it keeps is in its state,
// as bytes that are equal for equal states.
package stage
