// Package queue runs the jobs of a benchmark side by side.
//
// Jobs come from a command of bench, and results go back to it as they come. It knows nothing of what a job measures.
package queue
