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
	// Precision is that of cuda's products; empty: the fastest that agrees with fp32.
	Precision string
	Log       *slog.Logger
}

// Check refuses names that are none, and those that this program was built without.
func Check(name string) error {
	if name == CUDA || name == Auto {
		return nil // New looks for the device
	}
	_, err := New(name, Options{})
	return err
}

// CheckPrecision returns why a backend has no such precision.
func CheckPrecision(name, precision string) error {
	if err := cuda.CheckPrecision(precision); err != nil {
		return err
	}
	if precision != "" && name != CUDA && name != Auto {
		return fmt.Errorf("precision %s is of backend %s, not of %s", precision, CUDA, name)
	}
	return nil
}

// New opens a backend.
func New(name string, o Options) (backend.Backend, error) {
	if err := CheckPrecision(name, o.Precision); err != nil {
		return nil, err
	}
	switch name {
	case Go:
		return backend.Go{GEMM: o.GEMM}, nil
	case Gorgonia:
		return newGorgonia(o.GEMM)
	case CUDA, Auto:
		return orCPU(&cuda.Backend{Device: o.Device, Precision: o.Precision, Log: o.Log}, o), nil
	}
	return nil, fmt.Errorf("allowed are %s, %s, %s and %s", Go, CUDA, Auto, Gorgonia)
}
