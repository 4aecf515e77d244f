package backends

import (
	"fmt"
	"log/slog"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
	"github.com/plumbline/plumbline/trainer/head"
)

// The names of the backends.
const (
	Auto     = "auto" // cuda where there is a device, otherwise the CPU: gorgonia where it is linked, else go
	Go       = "go"
	CUDA     = "cuda"
	Gorgonia = "gorgonia"
)

// Options are what backends need.
type Options struct {
	GEMM   head.GEMM // matrix products on the CPU
	Device int       // of cuda
	Log    *slog.Logger
}

// Check refuses names that are none, and those that this program was built without.
func Check(name string) error {
	if name == CUDA || name == Auto {
		return nil // New looks for the device
	}
	_, err := New(name, Options{})
	return err
}

// New opens a backend.
func New(name string, o Options) (backend.Backend, error) {
	switch name {
	case Go:
		return backend.Go{GEMM: o.GEMM}, nil
	case Gorgonia:
		return newGorgonia(o.GEMM)
	case CUDA, Auto:
		return orCPU(&cuda.Backend{Device: o.Device}, o), nil
	}
	return nil, fmt.Errorf("allowed are %s, %s, %s and %s", Go, CUDA, Auto, Gorgonia)
}
