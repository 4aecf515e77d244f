// Package attempts restarts the failed tasks of a process. A task that ends with an error or a panic starts again from
// its checkpoint after a pause of a second, which doubles up to a minute; other tasks go on meanwhile. Tasks.Failing
// says which tasks fail, since when, at which record and why.
//
// A record that ends its task several times in a row is skipped: Guard says so to the task, before it takes the
// record. Only faults of the record itself count: panics, errors that are not of a disk, a network or another process,
// and the death of the process. To know a death, a task notes the record that it is about to take in a small file, from
// its start up to its first checkpoint: the next process reads there at which record the last one died. Without a
// directory for that file, deaths are not counted.
//
// The package knows nothing of what tasks do, and nothing of Kafka.
package attempts
