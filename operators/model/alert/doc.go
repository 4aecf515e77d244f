// Package alert settles, at the end of a label pane, which of the alerts of a model version are published, and which of
// them another alert or a calibrator inhibits.
//
// Rules and alarms decide their states and leave the changes of the pane in stage.Key.Alerts. This package sends one
// alert for one cause, not one for each rule that sees the same thing. Of what fires for a whole model version the root
// is the most severe; among equals the anytime alarm on raw confidences, the one on calibrated confidences, then the
// rules in their order, and a fall of accuracy last, as it may follow from any of them. The root inhibits all else that
// is pending or fires, for the whole and for its slices, unless that is more severe. Where nothing fires for the whole,
// each slice has a root of its own.
//
// The alarm on raw confidences is no root while a calibrator is in force and an alarm watches the calibrated
// confidences: the calibrator inhibits it. What was inhibited stays so for a time (Config.Hold) after its inhibitor is
// gone, because rules that look back further resolve later.
//
// Inhibition is decided here and published, not left to the readers of alerts: receivers that were notified of an alert
// also get its end when it is inhibited later, and a replay decides the same.
//
// The package knows no rule and no test. It publishes through stage.Env, and keeps the state of an alert in
// stage.Alert.
package alert
