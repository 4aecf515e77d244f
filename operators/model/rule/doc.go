// Package rule judges rules: a value of the latest rows of a key, held against bounds with hysteresis.
//
// A rule has a kind, which says what its value is:
//
//	excess      ECE - E[ECE of a perfectly calibrated model with the same confidences], of the latest label panes
//	            with at least Rows labelled rows; significant where ECE is above the null's 95 % quantile
//	reference   how much worse Measure is than in the reference (calib/detect/reference); significant where the
//	            95 % interval is above 0
//	distance    of the distribution of Score of the latest predictions from that of the reference; significant where
//	            it is above its threshold at level Alpha
//	estimate    without labels: of accuracy its fall from the labelled reference's, of ECE itself; of miss the
//	            difference between estimated and true accuracy of labelled rows, significant beyond 3 standard errors
//	threshold   Measure itself of the latest rows; significant always, or with Interval where its 95 % interval is
//	            beyond Fire
//
// A kind is one type that implements Rule, and one line in the table kinds. It keeps what it needs of a key, in most
// kinds a rule window: the latest rows in blocks of whole label panes, and a reference where it compares with one. At
// the end of a label pane the stage gives the pane to every rule of every key, asks for its judgement, and moves the
// state of its alert: pending while the value is beyond the bound and significant, firing after Config.For, resolved
// after Config.ClearFor on the other side. The change is left in the key's alert; package alert publishes it.
//
// Rules change often, and no change of them stops a task. What a checkpoint has of a rule goes to the rule of the same
// name and print; a new rule begins without rows; the alert of one that is gone, or means something else, ends
// (stage.Key.Ended).
//
// The package reads panes, the key's recent bins, and the key's Estimator for estimates without labels. It knows no
// other stage.
package rule
