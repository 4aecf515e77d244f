// Package slice chooses which values of a slice column get statistics of their own.
//
// A column can have more values than anyone can keep statistics for. Shards distinguish the values within a label pane
// and choose none (package operators/slicing). The model task, which has the cells of all shards, counts the
// predictions of each value (Counts), keeps the heaviest values, and pools the others as ~other. Counts are integers
// and are halved at multiples of a half-life of event time. The choice therefore depends neither on the order of rows
// nor on a clock. Among values with predictions it depends on these only. A value of which only labels have come, which
// may be older than their predictions, takes a place if one is free (Counts.Admit): pooled, its first labels would make
// a cohort that there is not. That there are labels matters then, and never what they say.
//
// The package knows neither cells nor statistics; the model task moves those.
package slice
