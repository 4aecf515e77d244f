// Package eventually waits in tests for what other goroutines and processes bring about.
//
// A test gives a condition, and words for it; the package asks again and again, soon at first and less often later,
// until the condition holds. After [Patience] the test fails with those words. Patience is far longer than anything
// takes: a machine with too much work is no reason to fail. The package knows nothing of what is waited for. A test
// whose goroutines sleep and nothing else uses testing/synctest, and needs no waiting.
package eventually
