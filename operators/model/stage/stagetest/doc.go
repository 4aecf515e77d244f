// Package stagetest holds what the tests of several stages of the model task need. It knows package stage and no
// stage. Imported by _test.go files only.
package stagetest
