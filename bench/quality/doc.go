// Command quality fits every method of calibration on one half of real logits and measures it on the other, ten
// times, and prints what came of it as Markdown. It reads ../shared/data, which is not part of the project, and says
// so where that is absent. PLUMBLINE_DOCS=1 writes the tables to bench/results.
//
// It knows methods by the registry of calib/calibrator only: a new one is measured without a change here.
package main
