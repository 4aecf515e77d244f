// Package rule evaluates rules: it compares a value of the latest rows of a key with bounds, with hysteresis.
//
// The kind of a rule says what its value is:
//
//	excess      ECE - E[ECE of a perfectly calibrated model with the same confidences], over the latest label panes
//	            with at least Rows labelled rows; significant if ECE is above the 95 % quantile of the null
//	reference   how much worse Measure is than in the reference (calib/detect/reference); significant if its 95 %
//	            interval is above 0
//	distance    distance of the distribution of Score in the latest predictions from the reference; significant above
//	            its threshold at level Alpha
//	estimate    without labels: for accuracy the fall from the labelled reference, for ECE the ECE itself; for miss
//	            the difference between estimated and true accuracy of labelled rows, significant beyond 3 standard
//	            errors
//	threshold   Measure of the latest rows itself; always significant, or with Interval only if its 95 % interval is
//	            beyond Fire
//
// A kind is one type that implements Rule, and one line in the table kinds. Most kinds keep a rule window for each key:
// the latest rows in blocks of whole label panes, and a reference if they compare with one. At the end of a label pane
// the stage passes the pane to every rule of every key, evaluates the rule, and updates its alert state. The alert is
// pending while the value is significant and beyond the bound. It fires after Config.For and is resolved after
// Config.ClearFor on the other side. The change is left in the key's alert; package alert publishes it.
//
// Rules change often, and no such change stops a task. The state of a rule in a checkpoint goes to the rule of the same
// name and fingerprint. A new rule starts without rows. If a rule is gone or means something else, its alert ends
// (stage.Key.Ended).
//
// The package reads panes, the key's recent bins, and the key's Estimator for estimates without labels. It knows no
// other stage.
package rule
