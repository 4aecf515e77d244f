// Package faulty gives builds for tests, by the build tag faulty, defects at records that are marked. The package does
// nothing in other builds.
package faulty

// Values of records at which a build for tests has a defect.
const (
	PanicMark = "plumbline-test-panic" // the task panics
	ExitMark  = "plumbline-test-exit"  // the process ends at once
)
