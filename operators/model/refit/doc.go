// Package refit refits the calibrators of model versions. It is a stage of the model task.
//
// At the end of each label pane of a version's whole, State.Step does four things, in this order:
//
//  1. Online Platt scaling takes the pane's rows. It is shown in snapshots, and nothing is calibrated by it.
//  2. The rollback monitor tests the calibrator in force against its baselines: the calibrators before it, and the
//     identity. If a baseline is better for sure, it is put into force again.
//  3. The refit run that is under way goes on. Its fits run in a Pool beside the task, and are due a fixed number of
//     label panes after the start. Then its candidates are scored against the calibrator in force, on rows that they
//     were not fitted on, pane by pane. A candidate is published when its e-value and its outlook say that it is
//     better, first to a share of the ids where there is a canary.
//  4. A new run begins: by period, or on an alarm with rows from after the alarm's start.
//
// State.StepShift then proposes class weights where the shares of the classes have moved. State.Obey carries out the
// orders of people.
//
// The package knows calibrators, sampled rows and its own decisions. It does not know rules, alarms and references:
// since when an alert fires, and which class weights the shares ask for, stage.Key says. It decides by label panes
// alone, so a decision does not depend on how long a fit takes: the task asks Awaits before each label pane, and waits
// where a fit is due that is not there.
//
// Its state of a version is in the task's checkpoint (State.Append). A fit that ran when the state was saved starts
// again (State.Continue). Decisions go out by stage.Env.Emit, as record.Calibrator; the calibrators in force are in
// stage.Version.Calibrators, the latest decision in stage.Version.Decision.
package refit
