// Package blas multiplies matrices with OpenBLAS where that is installed, and with gonum elsewhere. The library is
// loaded at run time, without cgo; nothing of it is linked.
//
//	gemm := blas.Best(logger, 0)
//	session, err := backend.Go{GEMM: gemm}.Open(problem)
//
// The package knows the library's names and its one function, sgemm. Matrices come as views of package head; it must
// not know what they mean.
//
// [Load] looks for the library under the names that Debian, Fedora, Alpine, Homebrew and FreeBSD's ports give it, and
// first under that of the environment variable PLUMBLINE_OPENBLAS, where "off" means none.
package blas

import (
	"errors"
	"log/slog"
	"runtime"
	"sync"

	"github.com/plumbline/plumbline/trainer/head"
)

// Env is the environment variable that names the library's file, or switches it off by "off".
const Env = "PLUMBLINE_OPENBLAS"

// ErrNotFound means that there is no OpenBLAS here that can be used; the text says what was tried.
var ErrNotFound = errors.New("no OpenBLAS")

// loaded is the one library of the process: it is never unloaded.
var loaded struct {
	sync.Once
	lib *OpenBLAS
	err error
}

// Load returns the process's OpenBLAS, loading it at the first call. Errors wrap [ErrNotFound].
func Load() (*OpenBLAS, error) {
	loaded.Do(func() { loaded.lib, loaded.err = load() })
	return loaded.lib, loaded.err
}

// Best returns OpenBLAS where it is installed, else gonum, and logs which. OpenBLAS then uses so many threads; 0 means
// as many as Go may use. The number holds for the whole process.
func Best(log *slog.Logger, threads int) head.GEMM {
	lib, err := Load()
	if err != nil {
		log.Info("matrix products by gonum", "reason", err)
		return head.Gonum{}
	}
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	lib.SetThreads(threads)
	log.Info("matrix products by OpenBLAS", "library", lib.Path(), "build", lib.Config(), "threads", lib.Threads())
	return lib
}
