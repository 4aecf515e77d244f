// Package pipeline is the runtime: it drives tasks over partitions of topics, saves what they are, and shows what they
// have decided.
//
//	topic ──▶ Source ──▶ loop ──▶ Task.Take ──▶ Task.Decided ──▶ Sink
//	                      │          │
//	                      │          └─ a Shard: Decoder ──▶ chain of Operators ──▶ Out, Outbox
//	                      └─ checkpoint: Task.Sections ──▶ CheckpointStore
//
// A shard reads one partition of the logits and labels topics and drives a chain of operators over the decoded batches.
// Its decisions are panes: closed intervals of label time, for the panes topic. A model task (operators/model) reads
// one partition of that topic, which is a complete and ordered log of all that it decides upon. Both run under Run, as
// members of Kafka consumer groups (package kafkaio). A replay over files calls the tasks itself.
//
// # Exactly once
//
// A checkpoint is a task at one moment: offsets, states, and what it has decided but not shown. What may come twice is
// written before the checkpoint, what must never be decided anew only when the checkpoint is durable (Outputs). A
// number of a checkpoint has one writer; who finds it taken has lost the task (ErrFenced). A journal beside each
// checkpoint has the order in which records were taken, so that a task which falls back to an older checkpoint decides
// the same again.
//
// # Contracts
//
// A batch is read-only. An operator that rejects rows emits a batch that says so, and Process returns the rejects of
// the whole chain. Tasks, sources and stages declare what they can do beyond their interface where they are registered:
// Registered, Opened and Stage have a field for each, and the loop looks for nothing else. Each section of a checkpoint
// has one version byte, which is written and checked here. A section that a checkpoint lacks begins afresh.
//
// # Limits of knowledge
//
// The package knows records, offsets, event time, watermarks and rows by number. It must not know Kafka (kafkaio), the
// directory of checkpoints (dirstore), what an operator does with a row, nor what a model is. It writes no setting of
// the process: Runner.Restoring tells the program when a task is being restored.
package pipeline
