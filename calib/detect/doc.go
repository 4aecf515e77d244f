// Package detect holds the anytime-valid alarm on calibration error: it may be read after every pane, and its rate of
// false alarms stays bounded. docs/math.md, "Sequential detection", has the statement, the proof and the limits.
//
// The input is panes: sums by confidence bin of some labelled rows, count and Σc of the correct and of the wrong ones.
// Each key has a Detector, or an Alarm of two of them, and gives it the panes in the order of labels:
//
//	alarm, err := detect.NewAlarm(detect.AlarmSpec{}) // ECE above .02, or a bin off by .05
//	pane, err := detect.FromGrid(grid, alarm.Bins())
//	fired, err := alarm.Observe(labelPane, pane, nil)
//	if fired != nil { ... fired.Headline.LogE, fired.Headline.Since, fired.Diagnosis.Bins ... }
//
// Two tests compare with a reference window (ReferenceCurve): the change mode, Spec.Reference with a small ε, and
// NullAccuracy, which sees a fall of accuracy even if the confidences fall with it.
//
// The caller's duties:
//  1. Give every labelled row once, in the order in which labels arrive: late rows in the pane in which they came.
//  2. Where the delay of a label depends on its being right or wrong (complaints first), give matured panes instead:
//     a row enters at its issue + D, D no less than the longest delay.
//  3. Give weight 1/g to each of g predictions that share an outcome. No weight may exceed 1 (Pane.Scale).
//  4. For longer panes merge grids, never the state of detectors.
//
// The stage operators/model/alarm is the caller. The package must not know keys, slices, time or what an alarm starts.
package detect
