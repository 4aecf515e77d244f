// Package model is the model task. It adds up what the shards have counted, and makes every decision about a model and
// its versions: snapshots, alerts, new calibrators, rollbacks, requests for heads.
//
//	shard 0 ─┐  panes topic                     for each label pane, in order
//	shard 1 ─┼─▶ increments ──▶ barrier ──▶ panes ──▶ stages ──▶ close ──▶ publish ──▶ Kafka, history
//	shard n ─┘  punctuations                  │      drift, window,  │
//	            orders of people              │      alarm, rule     └─ alert, refit, finetune
//	                                          └─ sampled rows scored by the calibrator in force
//
// # Words
//
// A pane is an interval of event time, 10 s by default. A row has two: the prediction pane, in which it was predicted,
// and the label pane, in which its label came. A key is a whole model version, or one slice of it (region=eu). A cell
// is the sums of one key, label pane and prediction pane. The task walks label panes and never goes back.
//
// # Where its data comes from and goes
//
// A task reads one partition of the panes topic and nothing else: no clock, no other topic. A message is an increment
// (the cells of one label pane from one shard), a punctuation (which label panes a shard has closed), or an order of a
// person. All messages of a model are in one partition, in one order. So the outputs are a function of that log. A task
// that starts again from a checkpoint writes the same bytes under the same keys, which replace themselves: it needs no
// fence against a second task.
//
// The outputs are values of package record: snapshots, alerts, calibrators and decisions, requests for heads, and
// verdicts on heads. Every output of a key enters the key's ledger, a hash chain that is part of the state hash; of a
// snapshot, which one it is: its figures follow from the state, and no decision from them. So a replay whose snapshots
// nobody reads does not make them (Config.Unseen). Package pipeline publishes the outputs and takes the checkpoints.
//
// # Life of a label pane
//
//  1. Take skips messages that it has seen, by their numbers, and keeps the cells of each key as pending.
//  2. The barrier is the first label pane that some shard has not closed; idle shards do not count. Each model
//     processes its label panes up to the barrier, but waits before a pane for which a fit is due that has not ended
//     (wait.go). Cells that come for a processed pane are late and join the next one.
//  3. Orders of people whose place is before the pane are carried out (order.go).
//  4. The number of classes of each version is settled, and cells of another number are held back or dropped
//     (classes.go).
//  5. The heaviest values of each slice column get statistics of their own. The cells of all others join ~other of
//     their column, and those without statistics yet are pending slices (slices.go, retire.go).
//  6. Versions are taken by name, and their keys: slices by name, then the whole version. The sampled rows of a key are
//     scored by the calibrator in force at their event time (score.go). Then each stage observes the key's pane.
//  7. Each stage closes the pane over all keys of the version. Then package alert settles the alerts, and package refit
//     tests the calibrator in force and continues or begins a refit run. Decisions take effect at the pane's end.
//  8. When all versions are done, package finetune evaluates shadow heads and asks for new heads. Versions without rows
//     for a long time are forgotten (forget.go).
//
// Models, versions and keys are always taken in the order of their names. The order of messages, the number of shards,
// and how many panes one punctuation closes make no difference.
//
// # Types
//
// Task reads the log: it knows offsets, which message is next, and what was decided and is not yet written. shards says
// which messages count and where the barrier is. fleet has the models, and processes a label pane of one when Task says
// so; turns are the models that wait. stepper takes one version through a pane, with contest for its number of classes
// and keyState for each key.
//
// # What it knows, and what it must not know
//
// The package knows models, versions, keys, panes, the barrier, the order of the stages, and the checkpoint. The
// checkpoint's section "model" is a loop over models, versions, keys and their stages. The package knows none of the
// stages' arithmetic. It must not know Kafka, the operators of a shard, or who reads its records. Package pipeline runs
// it (pipeline.Task), and internal/engine makes its Config from the configuration file.
//
// The table of stages (stages.go) has drift, window, alarm and rule. A new stage is a package and a line there; a new
// kind of rule is a type in package rule and a line in its table. No stage knows another stage or this package. What
// stages share is in package stage.
//
//	window     windows and their snapshots
//	drift      predictions before their labels: distances, estimates, class shares
//	alarm      anytime-valid alarms
//	rule       rules: values of the latest rows, compared with bounds
//	alert      which alerts are published, and what inhibits them
//	refit      refit runs, canaries, rollback monitor, orders about calibrators
//	finetune   requests for heads, shadow evaluator
//	slice      which slice values have statistics of their own
package model
