// Package slice chooses the values of a slice column that have statistics of their own.
//
// A column has more values than anyone can keep statistics of. Shards tell values apart in each label pane and choose
// none (package operators/slicing). The model task has the cells of all shards together; it counts the predictions of
// each value (Counts), keeps the heaviest, and pools the others as ~other. Counts are integers, halved at multiples of
// a half-life of event time, so the choice depends neither on the order of rows nor on a clock; it depends on
// predictions alone, never on labels.
//
// The package knows neither cells nor statistics: the model task moves those.
package slice
