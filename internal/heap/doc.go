// Package heap sets how often the garbage collector runs. Such settings belong to the program, not to a library: the
// command passes these functions to the engine and the trainer, which call them when a restore or a training begins and
// ends. The package knows nothing of either.
package heap
