// Package alarm is the anytime-valid alarm on calibration error and on accuracy, for every key. It is a stage of the
// model task; calib/detect has the tests.
//
// At the end of a label pane the stage gives the pane's sums by bin to the tests of each signal: the model's own
// confidence, the output of the calibrator in force, and the accuracy. Bets are fixed before a pane, on nothing of
// its own, and the wealth is multiplied once a pane. So the evidence may be looked at after every pane.
//
//   - The tests of slices raise no alarm of their own. Their e-values are settled together by e-BH, which bounds the
//     share of false ones whatever depends on what.
//   - An alarm says that the error was above the tolerance, never that it is gone: new rows have to show that. When
//     the alarm of a slice is resolved, its tests begin anew only where they have evidence left; elsewhere a new
//     beginning would give lost wealth back (docs/math.md, Theorem 3).
//   - A reference curve is of panes before the first one that it judges. Its uncertainty widens the tolerance.
//   - With Config.Matured the stage walks prediction panes of one age: where labels of wrong rows come earlier, the
//     first labels of a time are no sample of it.
//
// The package reads panes and keeps the state of its alerts in the key; package alert publishes them. It knows no
// rule, no refit and no snapshot. State under another specification begins without rows; a firing alert goes on until
// new rows end it.
package alarm
