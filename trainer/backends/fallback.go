package backends

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
)

// orCPU is the device, or what trains on the CPU with a message where there is none.
func orCPU(device *cuda.Backend, o Options) backend.Backend {
	cpu, log := onCPU(o.GEMM), o.Log
	info, err := device.Describe()
	if err != nil {
		log.Warn("training on the CPU: there is no device to train on", "backend", cpu.Name(), "why", err)
		return cpu
	}
	log.Info("training on a device", "device", info)
	return &fallback{first: device, second: cpu, log: log}
}

// fallback is a backend, and another one where the first cannot do: an old driver, no memory.
type fallback struct {
	first, second backend.Backend
	log           *slog.Logger
	fell          atomic.Bool
}

// Name implements backend.Backend: that of the backend that was opened last.
func (f *fallback) Name() string {
	if f.fell.Load() {
		return f.second.Name()
	}
	return f.first.Name()
}

// Open implements backend.Backend.
func (f *fallback) Open(p backend.Problem) (backend.Session, error) {
	s, err := f.first.Open(p)
	if f.fell.Store(errors.Is(err, backend.ErrUnsupported)); !f.fell.Load() {
		return s, err
	}
	f.log.Warn("training on the CPU: the device cannot", "backend", f.second.Name(), "why", err)
	return f.second.Open(p)
}
