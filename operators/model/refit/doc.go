// Package refit is the stage of the model task that refits the calibrators of model versions.
//
// At the end of each label pane State.Step does seven things for all rows of a version, in this order:
//
//  1. What probabilities follow (follow.go, speeds.go) takes the pane's rows; snapshots show how it does.
//  2. The bound of losses rises where a class turns out to be rare (losses.go). Then the account adds up what the rows
//     lost by being calibrated. Where that is too much, the identity takes force.
//  3. The rollback monitor tests the calibrator in force against its baselines, which are earlier calibrators and the
//     identity. If a baseline is significantly better, it comes back into force.
//  4. The first answer: after a large change, or a fault that healed, a map of few parameters that keeps the top class
//     takes force within some hundred rows.
//  5. The current refit run continues. Its fits run in a Pool beside the task and are due a fixed number of label panes
//     after the start. Then its candidates are scored against the calibrator in force, pane by pane, on rows that they
//     were not fitted on. A candidate is published when its e-value and its outlook both show that it is better; if a
//     canary is configured, it goes to a share of the ids first.
//  6. A new run begins: by period, or on an alarm once there are enough rows from after the alarm's start.
//  7. A correction is published where the outcomes have moved, on top of what is in force now.
//
// Then State.StepShift proposes class weights if the class shares have moved. State.Obey carries out orders of people.
//
// The package knows calibrators, sampled rows and its own decisions. It does not know rules, alarms and references.
// stage.Key tells it since when an alert fires and which class weights fit the class shares. Decisions depend on label
// panes only, not on how long a fit takes: before each label pane the task asks Awaits, and waits if a fit is due that
// has not ended.
//
// A State has parts that know the publisher, but not each other: runs, the first answer (quick) and corrections. The
// publisher knows what is in force, changes that, and monitors it. Where something else than a run changes what is in
// force, State ends the run.
//
// Words of this package:
//
//	answer      a first answer (step 4), published with the reason quick; refit.first_answer in the configuration
//	tracker     one of the temperatures that follow the newest rows and may become the first answer
//	turn        a publication that takes back the one before it: a stream may go to and fro
//	outlook     a lower bound of a calibrator's mean gain on the rows until the next refit (outlook.go)
//	correction  what probabilities get on top of the calibrator in force (steps 1 and 7); record.TopCorrection
//	account     what rows lost by being calibrated, or corrected; above a limit that ends, and rests
//	changes     the prediction times from which rows were unlike those before
//	promises    a run does that is likely to publish soon: no other replaces it
//
// With alarm.matured all of this sees a row once it is old enough (stage.Maturity), else when its label comes.
//
// The state of a version is in the task's checkpoint (State.Append). A fit that was running when the state was saved
// starts again (State.Continue). Decisions are published by stage.Env.Emit as record.Calibrator, corrections of the top
// confidence as record.TopCorrection. The calibrators in force are in stage.Version.Calibrators, and the latest
// decision is in stage.Version.Decision.
package refit
