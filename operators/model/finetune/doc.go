// Package finetune asks for new heads of a model, and decides about the shadows that come of them. It is the
// closing step of the model task: Model.Close runs when all versions of a model have processed a label pane.
//
// The trigger judges the sampled rows of each version that serves: accuracy and AURC against the version's first rows,
// and the ECE that is left after recalibration was tried. Where one has been over its bound for long enough, and
// neither the cool-down nor the budget forbids it, it publishes a request (record.Finetune). A trainer that is not part
// of the stream takes requests, and publishes heads.
//
// The shards run a new head beside the version that serves, as a version of its own: a shadow, named by
// record.ShadowVersion. The shadow evaluator pairs the sampled rows that both versions have, and publishes verdicts
// (record.Verdict): ready, rejected, or lost where no row came by the deadline. A head that is ready is watched for
// some time more, and rolled back where its NLL turns worse than that of the old head. Until a shadow is ready it
// is not served, so Model.Shadowing tells the task that it raises no alarm and is not refitted.
//
// The package knows the versions of a model, their sampled rows of the label pane at hand, and the calibrators in
// force. It does not know refits, alarms and windows; of a refit it knows the latest decision
// (stage.Version.Decision). It decides by label panes alone. Its state of a model is in the task's checkpoint
// (Model.Append).
package finetune
