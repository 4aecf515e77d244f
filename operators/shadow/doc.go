// Package shadow runs classifier heads that were trained on a version's features, beside that version, before they
// serve.
//
// Heads is the table of heads that all shards of a process share, filled from the heads topic. For each prediction of a
// version with a running head a prediction of the shadow version follows, with the head's logits; its scores wait here
// until the serving version's row is labelled, and then a labelled row of the shadow version follows too. So both
// versions are judged on the same rows, labels and label times. The stage stands between the join and the statistics,
// which count shadow rows like those of any version. Shadow rows are in no count of the shard's rows.
//
// A head runs from an event time on; where it comes too late for that, from the next whole pane. That moment, and the
// scores that wait, are the state. The package must not know whether a head is good: the model task judges.
package shadow
