// Command detect measures the detectors of package calib/detect on streams of real confidences: false alarms, delays,
// late labels, models that are wrong from the start. See `make detection-bench` and bench/detect/README.md.
//
// Confidences come from the shared data (../shared/data). Results of every block of runs go to a folder, so that a run
// goes on where it was stopped; tables made of them go to bench/results. It uses the detectors as shards do, by their
// public functions, and changes nothing in them.
package main
