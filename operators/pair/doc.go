// Package pair joins requests and responses that a model server has logged apart. It is the stage behind validate.
//
// A response is a prediction that lacks what only its request has: features, cohorts, a sampling weight. The two have
// one id and one model. The stage holds whichever comes first, and emits the response with what its request has when
// both are there. So no row without scores reaches a statistic, and every response counts once.
//
// A response goes on alone when the watermark passes its time, before that makes it late; a request is dropped, and
// counted, pair.wait after its time. So whether two rows that are not late meet depends on event times alone, and a
// replay gives the same rows. Beyond the bound in bytes the oldest goes as if its time had come.
//
// The package knows ids, times and the columns of a row. It must not know formats, nor what the rows are for.
package pair
