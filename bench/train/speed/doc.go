// Command speed is the Go side of bench/train/speed.py: it trains heads by the tasks that it reads, a line of JSON
// each, and answers with the seconds of every epoch. Arrays are .npy files of the folder that a task names.
//
// It knows nothing of PyTorch, which speed.py measures beside it.
package main
