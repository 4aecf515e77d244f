// Package inspect reports the content of a pane message: its cells and their metrics.
package inspect
