//go:build !(((linux && !android) || darwin) && (amd64 || arm64)) || static

package blas

import (
	"fmt"
	"runtime"

	"github.com/plumbline/plumbline/trainer/head"
)

// OpenBLAS is never loaded on this platform, nor by a static program (build tag static).
type OpenBLAS struct{ head.Gonum }

func load() (*OpenBLAS, error) {
	return nil, fmt.Errorf("%w: not looked for on %s/%s by this build", ErrNotFound, runtime.GOOS, runtime.GOARCH)
}

// Path is the name that the library was found under.
func (*OpenBLAS) Path() string { return "" }

// Config is the library's version, options and kernels.
func (*OpenBLAS) Config() string { return "" }

// SetThreads sets how many threads a large product uses.
func (*OpenBLAS) SetThreads(int) {}

// Threads is that number.
func (*OpenBLAS) Threads() int { return 1 }
