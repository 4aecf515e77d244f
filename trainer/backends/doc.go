// Package backends opens the backends of training by their names, for the command train and the trainer process.
//
// go is the default on the CPU and always there; cuda is too, and falls back to go where there is no device, an old
// driver or too little memory. gorgonia is linked by the build tag gorgonia only: it takes a third of what a process
// that does not train heads would carry, and is not faster (bench/results/train-speed.md). All of them pass
// backend/conformance.
package backends
