// Package pipeline is the runtime: it drives tasks over partitions of topics, saves their state, and publishes their
// decisions.
//
//	topic ──▶ Source ──▶ loop ──▶ Task.Take ──▶ Task.Decided ──▶ Sink
//	                      │          │
//	                      │          └─ a Shard: Decoder ──▶ chain of Operators ──▶ Out, Outbox
//	                      └─ checkpoint: Task.Sections ──▶ CheckpointStore
//
// A shard reads one partition of the logits and labels topics and drives a chain of operators over the decoded batches.
// Its decisions are panes: closed intervals of label time, for the panes topic. A model task (operators/model) reads
// one partition of that topic, which is a complete and ordered log of all its input. Both run under Run, as
// members of Kafka consumer groups (package kafkaio). A replay over files calls the tasks itself. The example of Run is
// an operator with state in a shard without Kafka.
//
// # Exactly once
//
// A checkpoint is a task at one moment: offsets, states, and decisions that are not published yet. Outputs that may
// come twice are written before the checkpoint. Decisions that must never differ in a repeat are written when the
// checkpoint is durable (Outputs). Each checkpoint number has one writer; a process that finds its number taken has
// lost the task (ErrFenced). A journal beside each checkpoint has the order in which records were taken, so a task that
// falls back to an older checkpoint makes the same decisions again.
//
// # Contracts
//
// A batch is read-only. An operator that rejects rows emits a batch that says so, and Process returns the rejects of
// the whole chain. Tasks, sources and stages declare what they can do beyond their interface where they are registered:
// Registered, Opened and Stage have a field for each, and the loop looks for nothing else. Each section of a checkpoint
// has one version byte, which is written and checked here. A component without a section starts fresh.
//
// # Limits of knowledge
//
// The package knows records, offsets, event time, watermarks and rows by number. It must not know Kafka (kafkaio), the
// directory of checkpoints (dirstore), what an operator does with a row, nor what a model is. It writes no setting of
// the process: Runner.Restoring tells the program when a task is being restored.
package pipeline
