// Package alert decides, at the end of a label pane, which alerts of a model version are published and which of them
// are inhibited by another alert or by a calibrator.
//
// Rules and alarms decide their own states and leave the changes of the pane in stage.Key.Alerts. This package notifies
// once for one cause, not once for every rule that sees it. Among the alerts that fire for a whole model version it
// picks a root: the most severe one. Among equals the order is: the anytime alarm on raw confidences, the one on
// calibrated confidences, the rules in their order, and last the alarm on accuracy, since a fall of accuracy may follow
// from any of them. The root inhibits all other pending and firing alerts of the version and of its slices, except more
// severe ones. If nothing fires for the whole version, each slice has a root of its own.
//
// While a calibrator is in force and an alarm watches the calibrated confidences, the alarm on raw confidences cannot
// be the root; the calibrator inhibits it. An inhibited alert stays inhibited for a time (Config.Hold) after its
// inhibitor is gone, because rules with longer windows resolve later. An alarm on the calibrated confidences whose
// error came before the newest calibrator waits for rows that this calibrator serves instead: it stays inhibited,
// however long, until they show the error, and is notified at once then. Time alone would notify of an error that no
// row shows, and would keep quiet about that of a slice which a calibrator of the whole version does not mend.
//
// The alerts of a version that has no predictions any more (stage.Version.Silent) are all inhibited, and keep their
// states: nobody can mend a version that nobody asks, and no row can end its alerts. When predictions are back they are
// published at once.
//
// Inhibition is decided and published here, not left to those who read alerts. So a receiver that was notified of an
// alert also gets its resolution, even if the alert is inhibited meanwhile, and a replay decides the same.
//
// The package knows no rule and no test. It publishes through stage.Env and keeps the state of an alert in stage.Alert.
package alert
