// Package model is the model task: everything that is decided about a model and its versions is decided here.
//
//	shard 0 ─┐  panes topic                     for each label pane, in order
//	shard 1 ─┼─▶ increments ──▶ barrier ──▶ panes ──▶ stages ──▶ close ──▶ publish ──▶ Kafka, history
//	shard n ─┘  punctuations                  │      drift, window,  │
//	            orders of people              │      alarm, rule     └─ alert, refit, finetune
//	                                          └─ sampled rows scored by the calibrator in force
//
// # Where its data comes from and goes
//
// A task reads one partition of the panes topic and nothing else: no clock, no other topic. A message is an increment
// (the cells of one label pane from one shard), a punctuation (which label panes a shard has closed), or an order of a
// person. All messages of a model are in one partition, in one order. So the outputs are a function of that log: a task
// that starts again from a checkpoint writes the same bytes under the same keys, which replace themselves. It needs no
// fence.
//
// The outputs are snapshots, alerts, calibrators and decisions, requests for heads, and verdicts on heads, as values of
// package record. Every output of a key enters the key's ledger, a hash chain that is part of the state hash.
//
// # Life of a label pane
//
//  1. Take skips messages that it has seen, by their numbers, and keeps the cells of each key as pending.
//  2. The barrier is the first label pane that some shard has not closed. Idle shards do not count. Each model
//     processes its label panes up to the barrier, but not past a pane for which a fit is due that has not ended
//     (wait.go). Later cells for a processed pane are late and join the next one.
//  3. Orders of people whose place is before the pane are carried out (order.go).
//  4. Slices: the heaviest values of each slice column get statistics of their own. The cells of all others join
//     ~other of their column, and those without statistics yet are pending slices (slices.go, retire.go).
//  5. Every version, by name, gives its keys their pane: slices by name, then the whole version. The sampled rows are
//     scored by the calibrator in force at their event time (score.go). Each stage observes the pane.
//  6. Each stage closes the pane over all keys of the version. Then package alert settles the alerts, and package refit
//     tests the calibrator in force, continues a refit run or begins one. Decisions take effect at the pane's end.
//  7. When all versions are done, package finetune evaluates shadows and asks for new heads. Versions without rows for
//     a long time are forgotten (forget.go).
//
// Models, versions and keys are always taken in the order of their names. Neither the order of messages, nor the number
// of shards, nor how far one punctuation jumps makes a difference.
//
// # What it knows, and what it must not know
//
// The package knows models, versions, keys, panes, the barrier, the order of the stages, and the checkpoint, whose
// section "model" is a loop over models, versions, keys and their stages. It knows none of the stages' arithmetic. It
// must not know Kafka, the operators of a shard, or who reads its records: package pipeline runs it (pipeline.Task),
// and internal/engine makes its Config from the configuration file.
//
// The table of stages (stages.go) has drift, window, alarm and rule. A new stage is a package and a line there; a new
// kind of rule is a type in package rule and a line in its table. No stage knows another stage or this package; what
// stages share is in package stage.
//
//	window     windows and their snapshots
//	drift      predictions before their labels: distances, estimates, class shares
//	alarm      anytime-valid alarms
//	rule       rules on the rule window: the latest rows, held against bounds
//	alert      which alerts are published, and what inhibits them
//	refit      refit runs, canaries, rollback monitor, orders about calibrators
//	finetune   requests for heads, shadow evaluator
//	slice      which slice values have statistics of their own
package model
