// Package service trains the heads that model tasks ask for, one job at a time in each process.
//
// Trainers agree by the order of the heads topic: the first claim of an attempt gets the job, the later records of that
// attempt are its heartbeats, and the first result counts. No two machines compare clocks: a trainer takes a job for
// lost when it has read no heartbeat for a time by its own clock.
//
//	requests, claims, heartbeats, results, cancels ──▶ Queue ──▶ what to do next
//	                                                     │
//	       claim ◀── Service ──▶ Runner (recipes, or a command) ──▶ job directory ──▶ result
//
// A job's directory has the request, the checkpoints of its trainings, and in the end the result, which appears there
// as a whole or not at all. A process that was killed goes on from there: at the result, at a checkpoint, or at the
// start.
//
// The package knows jobs, attempts and results. It must not know Kafka (the process hands it [Entry] values and a
// function to publish with), where rows come from ([Load]), or why a head was asked for.
package service
