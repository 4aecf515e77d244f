//go:build gorgonia

package backends

import (
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/gorgonia"
	"github.com/plumbline/plumbline/trainer/head"
)

func newGorgonia(g head.GEMM) (backend.Backend, error) { return gorgonia.Backend{GEMM: g}, nil }

// onCPU is gorgonia, where it is linked.
func onCPU(g head.GEMM) backend.Backend { return gorgonia.Backend{GEMM: g} }
