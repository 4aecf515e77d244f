// Package realdata finds the real data sets that tests run on, which are not part of the repository, and reads their
// arrays: $PLUMBLINE_DATA names their folder, else it is ../shared/data beside the repository. Where there is no such
// file, tests skip and say which one they miss. Imported by _test.go files only.
//
//	z, y := realdata.Scores(t, "c10jpeg_resnet_logits.npz", "resnet20", "test_labels")
package realdata
