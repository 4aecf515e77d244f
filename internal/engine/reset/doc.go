// Package reset lets a task whose state is lost begin anew, when a person orders it, and says what is lost.
//
// A task without a checkpoint asks [Topics] whether it had one: committed offsets of its group, and panes of the shard,
// outlive a directory. [Reset.Plan] says what `plumbline state reset` would do to each task,
// and what is lost by it; [Reset.Apply] writes it into the store of checkpoints, where the task finds it when it is
// tried next. The package must not know what the states hold: operators/model and pipeline write their own sections.
package reset
