// Package inspect reports the content of a pane message, its cells and their metrics, for `plumbline inspect`. The
// package knows the format of panes and the sums in a cell. It reads no topic: the command passes it bytes.
package inspect
