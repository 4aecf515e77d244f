// Package decisionlog keeps what was decided: a copy of every decision goes to the decisions topic, and from there into
// the database of the history.
//
// A [Recorder] wraps the sink of the model tasks and adds the copies. Orders of people are written here too, with the
// reason where one is refused. A [Store] is the database with what fills it; pages of it answer the API and
// `plumbline history`. The package must not know what the decisions mean.
package decisionlog
