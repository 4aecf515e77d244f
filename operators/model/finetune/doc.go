// Package finetune asks for new heads of a model and decides about the shadows that result. It is the last step of the
// model task: Model.Close runs when all versions of a model have processed a label pane.
//
// The trigger watches the sampled rows of each version that serves. It compares accuracy and AURC with the first rows
// of the version, and checks the ECE that remains after recalibration was tried. When one of them has been over its
// bound for long enough, and neither the cool-down nor the budget forbids it, the trigger publishes a request
// (record.Finetune). A trainer outside the stream takes requests and publishes heads.
//
// The shards run a new head beside the version that serves, as a version of its own: a shadow, named by
// record.ShadowVersion. The shadow evaluator pairs the sampled rows that both versions have, and publishes verdicts
// (record.Verdict): ready, rejected, or lost if no row came by the deadline. It watches a ready head for some time and
// rolls it back if its NLL becomes worse than that of the old head. A shadow is not served until it is ready, so
// Model.Shadowing tells the task that it raises no alarm and is not refitted.
//
// The package knows the versions of a model, their sampled rows of the current label pane, and the calibrators in
// force. It does not know alarms and windows. Of refits it knows only the latest decision (stage.Version.Decision). Its
// decisions depend on label panes only. Its state of a model is in the task's checkpoint (Model.Append).
package finetune
