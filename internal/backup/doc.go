// Package backup copies the state of a deployment and its history into one file, and puts them back.
//
// The file is a gzipped tar archive: manifest.json, then the files of checkpoints.dir below state/ and the database of
// the history as history.db. The manifest has the size and SHA-256 of each, so a file that was cut or changed is
// refused before anything is written.
//
// Checkpoints of several tasks belong together, so they are copied while no process writes: all are stopped, or paused
// and settled. A copy during which a file changes, comes or goes is refused.
//
// The package knows directories. It does not know what a checkpoint holds.
package backup
