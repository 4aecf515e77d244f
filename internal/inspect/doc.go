// Package inspect tells what a pane message holds: its cells with their metrics.
package inspect
