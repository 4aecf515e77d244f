// Package attempts runs the tasks of a process again and again. A task that fails, by an error or a panic, begins anew
// from its checkpoint after a pause of a second, which doubles up to a minute; other tasks go on meanwhile.
// Tasks.Failing tells which tasks fail, since when, at which record and why.
//
// A record that ends its task several times in a row is passed over: Guard says so to the task, before it takes the
// record. Only faults that are the record's own count: panics, errors that are not of a disk, a network or another
// process, and the death of the process. For the last, the record that a task is about to take is noted in a small file
// from the start of the task up to its first checkpoint, so that the next process knows of which record the last one
// died. Without a directory for that file, deaths are not counted.
//
// The package knows nothing of what tasks do, and nothing of Kafka.
package attempts
