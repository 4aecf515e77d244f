// Package dataset reads the rows that a head is trained on: from files of one, from directories, and from the archive.
//
// [Options.Read] reads a file or directory and divides its rows into those that train, validate and are held out. A
// [Source] collects the rows of several files: labels and times in memory, features where they lie. [Source.AddArchive]
// takes from an archive what was predicted in a span and labelled by its end, and waits until the archive has it;
// [Source.AddFiles] takes files of one model and backbone. Features that fit into the allowed memory are read into it,
// others stay in their files. [Rows] says what was used, what was left out, and why.
//
// The result is a data.Set, for packages recipe and service. The package must not know requests, topics or trainings.
package dataset
