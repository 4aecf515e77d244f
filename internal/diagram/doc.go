// Package diagram makes the panels that say how a model is calibrated and how a head was trained, for package plot.
//
// [Evaluation] draws labelled rows and their metrics: reliability with Wilson intervals, risk against coverage, and the
// confidences. [Training] draws the epochs of a training. The numbers come from packages metric and recipe; the package
// computes none, and knows no file and no stream.
package diagram
