// Package data has what a head is trained on: labelled rows of features, in memory or in files.
//
// A [Set] is a view of rows: float32 or float16 features in memory, or [Stored] ones that stay in their files and are
// read in blocks. [Set.Split] divides rows by time into those that train and those that validate; [Set.Order] is the
// order of an epoch's mini-batches, a function of seed and epoch alone.
//
// Packages dataset and service make sets; recipe and the backends read them. The package must not know file formats,
// heads or losses.
package data
