// Command worker runs the package's own side of the benchmarks: bench/run.py sends it one task a line as JSON, and it
// answers with the seconds of the computation alone and its results. Arrays are .npy files of the folder it is given;
// they are read once.
//
// It knows nothing of the peers that it is compared with; run.py does.
package main
