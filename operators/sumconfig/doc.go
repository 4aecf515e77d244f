// Package sumconfig has what a shard and a model task must agree on about the sums of cells: the keys that decide their
// shape. Sums of two shapes cannot be added, so each task's state says of which it is, and refuses another.
//
// The package knows the names of keys. It must not know rows, cells or states.
package sumconfig
