// Package oracle holds the recorded behaviour of the program: tests that run it on fixed input and compare what it
// puts out, byte for byte, with golden files. It has no code of its own.
//
// Two things are recorded.
//
// The world (world_test.go) is a run without a broker for each of many seeds: deterministic streams of predictions and
// labels go through shards, a log of panes and model tasks. The seed varies models, versions, classes, slices, late
// rows, drift, missing labels, orders, restarts, shards and the whole configuration. testdata/world.golden has a line
// for each stream of each task, with the SHA-256 of its messages in order, and one for the ledger of each key, the
// chain of hashes over its outputs. testdata/formats.golden has the bytes of what only the program itself reads: panes,
// encoded accumulators, the Arrow messages of calibrated rows. A deliberate change of a format moves that file alone.
// Checkpoints and state hashes are not recorded. testdata/coverage.golden counts what the streams contain, so that a
// reader sees which rules, refits and verdicts the hashes stand for.
// testdata/classdrift.golden is one more world: shares of classes move, and label_shift has its default.
//
// The commands (command_test.go) are eval, fit, apply, convert, replay and test rules on files that the tests write.
// testdata/command has what they print.
//
// A test that fails means that behaviour has moved. The output names the first items that differ; with
// PLUMBLINE_ORACLE_DUMP=DIR the world's outputs are written to DIR, so that two trees can be compared with diff.
// The flag -update writes the golden files anew. Code that moves without changing behaviour never needs it: it is for a
// commit that changes what the program says, and says so.
//
// The program is reached through wiring_test.go alone. When packages move, that file follows them and nothing else.
package oracle
