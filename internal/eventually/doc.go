// Package eventually waits in tests for a condition that other goroutines or processes make true.
//
// A test gives a condition and words for it. The package checks the condition repeatedly, often at first and less often
// later. After [Patience] the test fails with the words. Patience is far longer than anything takes, so that a busy
// machine fails no test. The package knows nothing of the condition. A test whose goroutines only sleep uses
// testing/synctest instead.
package eventually
