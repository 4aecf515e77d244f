//go:build !gorgonia

package backends

import (
	"errors"

	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/head"
)

func newGorgonia(head.GEMM) (backend.Backend, error) {
	return nil, errors.New("this program has no gorgonia: plumbline-train does (make plumbline-train, or " +
		"go build -tags gorgonia -o plumbline-train ./cmd/plumbline); go computes the same, as fast")
}

// onCPU is our own backend, where gorgonia is not linked.
func onCPU(g head.GEMM) backend.Backend { return backend.Go{GEMM: g} }
