// Package slice chooses which values of a slice column get statistics of their own.
//
// A column can have more values than anyone can keep statistics for. Shards distinguish the values within a label pane
// and choose none (package operators/slicing). The model task, which has the cells of all shards, counts the
// predictions of each value (Counts), keeps the heaviest values, and pools the others as ~other. Counts are integers
// and are halved at multiples of a half-life of event time. The choice therefore depends neither on the order of rows
// nor on a clock. It depends on predictions only, never on labels.
//
// The package knows neither cells nor statistics; the model task moves those.
package slice
