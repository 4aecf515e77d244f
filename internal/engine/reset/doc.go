// Package reset is about states of tasks that are gone: what the topics still say of one, and how a task begins anew by
// a person's order.
//
// A task without a checkpoint asks [Topics] whether it had one: the offsets that its group has committed, and the panes
// that a shard has written, outlive a directory. [Reset.Plan] says what `plumbline state reset` would do to each task,
// and what is lost by it; [Reset.Apply] writes it into the store of checkpoints, where the task finds it when it is
// tried next. The package must not know what the states hold: operators/model and pipeline write their own sections.
package reset
