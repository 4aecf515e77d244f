// Package archive keeps labelled rows in a directory of Arrow files, for training.
//
// Shards hand it finished files (arrowio/archivefile) with the labels of one model version. [Archive.Publish] writes
// each under a name that its rows decide, in hive partitions (model=…/version=…), by a temporary name and a rename: a
// reader never sees half a file, and a file that is made again after a restart replaces itself. [Archive.Sweep] removes
// what Config's bounds of bytes and age leave out, and temporary files that a killed process left. An Archive is a
// Prometheus collector.
//
// The package knows files, names and bounds. It must not know why a row is in the archive, nor who trains on it.
package archive
