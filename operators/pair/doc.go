// Package pair joins requests and responses that a model server has logged apart. It is the stage behind validate.
//
// A response is a prediction that lacks what only its request has: features, cohorts, a sampling weight. The two have
// one id and one model. The stage holds whichever comes first, and emits the response with what its request has when
// both are there. A request stays, because several versions may answer it: a shadow deployment, an A/B test. So no row
// without scores reaches a statistic, and every response counts once.
//
// A response goes on alone when the watermark passes its time, before that makes it late. A request goes pair.wait
// after its time, and is counted if it has met none; it serves responses up to that time. So whether two rows meet that
// come before the watermark passes either depends on event times alone, and a replay gives the same rows. Beyond the
// bound in bytes requests that have met go first, then the oldest row goes as if its time had come.
//
// The package knows ids, times and the columns of a row. It must not know formats, nor what the rows are for.
package pair
