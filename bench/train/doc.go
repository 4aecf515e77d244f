// Command train fine-tunes heads on real features by every recipe, on rows that have drifted and on clean ones, and
// measures them on rows that no training has seen: the tables of bench/results/train.md.
//
// A trial is one point of a method's grid of hyper-parameters on one setting with one seed, a line of JSON with its
// parameters, its commit, what its head gave on the validation rows, by which points are chosen, and on the test rows.
// A run that was stopped goes on where it was; -fresh starts again. It reads ../shared/data, which is not part of the
// project, and says so where that is absent. PLUMBLINE_DOCS=1 writes the tables to bench/results.
package main
