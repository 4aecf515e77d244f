// Package batchtest makes test rows from a seed and the records that carry them: the one place where tests of
// shards, operators and model tasks get their messages from. Imported by _test.go files only.
package batchtest
