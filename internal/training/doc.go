// Package training fine-tunes a head on the rows of files, for `plumbline train`. It reads the rows, runs a recipe or
// the candidates of auto with checkpoints, scores the new head beside the current one, and writes head, curves and
// report.
//
// Rows come from package dataset, recipes and devices from trainer/recipe and trainer/backends, scores from package
// offline. Errors name the flags of the command. The package must not know how flags are read; the trainer process,
// which trains what the stream asks for, is package trainerd.
package training
