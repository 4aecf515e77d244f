// Package heap sets how often the garbage collector runs, which is the program's to say: cmd/plumbline hands its
// functions to the engine and the trainer, which only say when a restore or a training begins and ends.
package heap
