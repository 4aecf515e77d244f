// Package demo is the whole loop in one minute, on one machine and without anything to set up.
//
// [Run] trains a small classifier of digits, starts a Kafka broker in this process, streams logits and late labels,
// runs the engine on them and a trainer beside it. At 40 % of the run the images change; the story on the terminal
// says what the pipeline makes of that, and a [Result] whether the loop closed: alarm, refit, a new head. Event time
// and the seed alone decide the results, so the same run without a broker (in the tests) gives the same.
//
// The package must not know how the engine or the trainer work: it configures them as a user would.
package demo
