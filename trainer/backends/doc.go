// Package backends opens the backends of training by their names, for the command train and the trainer process.
//
// go is the default on the CPU and always there. cuda is always there too, and falls back to the CPU where there is no
// device, an old driver or too little memory. gorgonia is linked by the build tag gorgonia only: it makes programs
// larger and slower to build, and is not faster (bench/results/train-speed.md). All of them pass
// backend/conformance.
//
// Names come from flags and configuration; the result is a backend.Backend. The package must not know recipes or jobs.
package backends
