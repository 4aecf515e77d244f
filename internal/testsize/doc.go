// Package testsize says how much a test is to do, and measures the memory that it takes. There are three sizes.
//
// `go test -short` leaves out the tests that call [Slow], and draws less where they ask [Short]: a developer's first
// answer. `go test` runs all, each as large as its statement needs. With PLUMBLINE_LONG=1 (`make test-long`) tests
// repeat more: more seeds, denser crashes, larger tables. The package knows nothing of what is tested, and is for tests
// only.
package testsize
