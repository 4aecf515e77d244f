// Package heads knows what the finetune and heads topics say about the heads of models: who asked for one, which
// trainer works on it, what came of it, and which head is served.
//
// A [State] takes the records of both topics in any order. It gives the trained heads to the shards, which run them, a
// [View] to the page and the commands, and jobs to the metrics. Orders of people are checked against the view and
// published to the heads topic. The package must not know how topics are followed, nor how heads are trained or judged.
package heads
