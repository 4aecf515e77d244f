// Package alarm is the stage of the model task that runs the anytime-valid alarms of every key. They watch calibration
// error and accuracy. The tests themselves are in calib/detect.
//
// At the end of a label pane the stage passes the pane's sums by bin to the tests of each signal. The signals are the
// model's own confidence, the output of the calibrator in force, and accuracy. Each bet is fixed before its pane and
// does not depend on it. Wealth is multiplied once a pane. Evidence may therefore be read after every pane.
//
//   - The tests of slices raise no alarm by themselves. For each signal, e-BH decides over the e-values of all slices
//     of a version. It bounds the share of false ones among the slices that alarm on that signal, under any dependence
//     between slices. Each signal has its own bound; the signals of a version together have none.
//   - An alarm shows that the error was above the tolerance. It cannot show that the error is gone; new rows have to do
//     that. When the alarm of a slice is resolved, its tests start again only if they have evidence left. Otherwise a
//     fresh start would restore lost wealth (docs/math.md, Theorem 3).
//   - All panes of a reference curve come before the first pane that is compared with it. The uncertainty of the curve
//     widens the tolerance.
//   - A fall of accuracy that the confidences showed is news once: hard inputs come back, by night or on weekends. The
//     level that accuracy is compared with follows the confidences from then on (hardTimes).
//   - With Config.Matured the stage walks prediction panes of equal age. If labels of wrong predictions come earlier
//     than others, the first labels of a period are a biased sample of it.
//
// The package reads panes and keeps the states of its alerts in the key; package alert publishes them. It knows no
// rule, no refit and no snapshot. If the specification has changed since the state was saved, the tests start without
// rows, and a firing alert stays until new rows end it.
package alarm
