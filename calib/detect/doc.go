// Package detect holds the anytime-valid alarm on calibration error, a function of pane sums alone (docs/math.md,
// "Sequential detection", has the statement, the proof and the limits).
//
// A pane is what a confidence grid says of some labelled rows: by bin, count and Σc of the correct and of the wrong
// ones. For each key there is a Detector, or an Alarm of two of them; the panes of labels are given to it in order:
//
//	alarm, err := detect.NewAlarm(detect.AlarmSpec{}) // ECE above .02, or a bin off by .05
//	pane, err := detect.FromGrid(grid, alarm.Bins())
//	fired, err := alarm.Observe(labelPane, pane)
//	if fired != nil { ... fired.Headline.LogE, fired.Headline.Since, fired.Diagnosis.Bins ... }
//
// Against a reference window (ReferenceCurve) there are the change mode, Spec.Reference with a small ε, and
// NullAccuracy, which sees a fall of accuracy that the confidences foretell and calibration therefore does not show.
//
// The caller's duties:
//  1. Give every labelled row once, in the order in which labels arrive: late rows in the pane in which they came.
//  2. Where the delay of a label depends on its being right or wrong (complaints first), give matured panes instead:
//     a row enters at its issue + D, D no less than the longest delay.
//  3. Give weight 1/g to each of g predictions that share an outcome. No weight may exceed 1 (Pane.Scale).
//  4. To look at longer panes merge grids, never the state of detectors.
package detect
