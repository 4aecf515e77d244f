// Package service trains the heads that model tasks ask for, one job at a time a process.
//
// Everything that trainers agree on stands in the log of the heads topic, whose order decides: the first claim of an
// attempt holds the job, its records after that are the heartbeat, the first result is the result. Nobody compares
// clocks of two machines: a job is lost when a trainer has not seen a sign of life for a time by its own clock.
//
//	requests, claims, heartbeats, results, cancels ──▶ Queue ──▶ what to do next
//	                                                     │
//	       claim ◀── Service ──▶ Runner (recipes, or a command) ──▶ job directory ──▶ result
//
// A job's directory has the request, the checkpoints of its trainings, and in the end the result, which appears there
// as a whole or not at all. A process that was killed goes on from there: at the result, at a checkpoint, or at the
// start.
package service
