//go:build ((linux && !android) || darwin || freebsd) && (amd64 || arm64)

package blas

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
)

// OpenBLAS is a loaded library, safe for concurrent use.
type OpenBLAS struct {
	path   string
	sgemm  uintptr
	config func() string
	set    func(int32)
	// threads is how many goroutines share a large product; the library itself uses one thread. Its own ones wait for
	// each other by yielding, which on a machine with other work costs a time slice each: ten times the product.
	threads atomic.Int32
}

// names are the files to try, in order. The 64-bit-integer builds (libopenblas64) have another ABI and are not used.
func names() []string {
	switch v := os.Getenv(Env); v {
	case "":
	case "off":
		return nil
	default:
		return []string{v}
	}
	if runtime.GOOS == "darwin" {
		return []string{"libopenblas.0.dylib", "libopenblas.dylib",
			"/opt/homebrew/opt/openblas/lib/libopenblas.0.dylib", "/usr/local/opt/openblas/lib/libopenblas.0.dylib"}
	}
	return []string{"libopenblas.so.0", "libopenblasp.so.0", "libopenblas.so.3", "libopenblas.so"}
}

func load() (*OpenBLAS, error) {
	var tried []string
	defer chooseKernels()()
	for _, name := range names() {
		lib, err := open(name)
		if err == nil {
			return lib, nil
		}
		tried = append(tried, err.Error())
	}
	if tried == nil {
		return nil, fmt.Errorf("%w: switched off by %s", ErrNotFound, Env)
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.Join(tried, "; "))
}

// coreEnv is OpenBLAS's own variable for the kernels of a kind of processor.
const coreEnv = "OPENBLAS_CORETYPE"

// chooseKernels names the kernels that fit this processor while the library loads, unless the user has; the returned
// function takes that back. OpenBLAS knows processors by their numbers and takes kernels of 2004 for one that is newer
// than itself: 0.3.21 does so on Emerald Rapids, at a sixth of the speed.
func chooseKernels() (undo func()) {
	core := kernels()
	if _, set := os.LookupEnv(coreEnv); set || core == "" || os.Setenv(coreEnv, core) != nil {
		return func() {}
	}
	return func() { _ = os.Unsetenv(coreEnv) }
}

func kernels() string {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512CD && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return "SkylakeX"
	case x.HasAVX2 && x.HasFMA:
		return "Haswell" // also those of AMD's processors
	}
	return ""
}

func open(name string) (*OpenBLAS, error) {
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, err
	}
	lib := &OpenBLAS{path: name}
	if lib.sgemm, err = purego.Dlsym(h, "sgemm_"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for symbol, f := range map[string]any{"openblas_get_config": &lib.config, "openblas_set_num_threads": &lib.set} {
		at, err := purego.Dlsym(h, symbol)
		if err != nil { // another BLAS under this name
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		purego.RegisterFunc(f, at)
	}
	if c := lib.config(); strings.Contains(c, "USE64BITINT") {
		return nil, fmt.Errorf("%s: built with 64-bit integers: %s", name, c)
	}
	lib.SetThreads(1)
	return lib, nil
}

// Path is the name that the library was found under.
func (l *OpenBLAS) Path() string { return l.path }

// Config is the library's version, options and kernels, as it says itself.
func (l *OpenBLAS) Config() string { return strings.TrimSpace(l.config()) }

// SetThreads sets how many threads a large product uses: one number for the whole process.
func (l *OpenBLAS) SetThreads(n int) {
	l.set(1)
	l.threads.Store(int32(max(n, 1)))
}

// Threads is that number.
func (l *OpenBLAS) Threads() int { return max(1, int(l.threads.Load())) }

// scalars are what the Fortran interface takes by address.
type scalars struct {
	transA, transB         byte
	m, n, k, lda, ldb, ldc int32
	alpha, beta            float32
}

// Gemm implements [head.GEMM]. The library counts by columns, where a row-major matrix is its transpose, so it computes
// Cᵀ ← α·op(B)ᵀ·op(A)ᵀ + β·Cᵀ. The Fortran interface is called, not the C one: with every argument an address, the call
// needs no reflection and costs about a third of a microsecond.
func (l *OpenBLAS) Gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	check("a", a, transA, m, k, lda)
	check("b", b, transB, k, n, ldb)
	check("c", c, false, m, n, ldc)
	if parts := l.Threads(); parts > 1 && m*n*k >= sharedFrom {
		l.share(parts, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	l.product(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// sharedFrom is the number of multiplications from which a product is shared: about 20 µs of one thread.
const sharedFrom = 1 << 21

// share divides C by rows, or by columns where it has more of them, among goroutines.
func (l *OpenBLAS) share(parts int, transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	const lanes = 16 // parts are whole vectors
	size := (max(m, n)/parts + lanes) &^ (lanes - 1)
	var group sync.WaitGroup
	for from := 0; from < max(m, n); from += size {
		count := min(size, max(m, n)-from)
		group.Go(func() {
			switch {
			case n > m && transB:
				l.product(transA, transB, m, count, k, alpha, a, lda, b[from*ldb:], ldb, beta, c[from:], ldc)
			case n > m:
				l.product(transA, transB, m, count, k, alpha, a, lda, b[from:], ldb, beta, c[from:], ldc)
			case transA:
				l.product(transA, transB, count, n, k, alpha, a[from:], lda, b, ldb, beta, c[from*ldc:], ldc)
			default:
				l.product(transA, transB, count, n, k, alpha, a[from*lda:], lda, b, ldb, beta, c[from*ldc:], ldc)
			}
		})
	}
	group.Wait()
}

// product calls the library; the matrices lie in their slices.
func (l *OpenBLAS) product(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	s := &scalars{op(transA), op(transB), int32(m), int32(n), int32(k), int32(lda), int32(ldb), int32(ldc), alpha, beta}
	const length = 1 // of the two texts, which Fortran compilers pass at the end
	purego.SyscallN(l.sgemm,
		uintptr(unsafe.Pointer(&s.transB)), uintptr(unsafe.Pointer(&s.transA)),
		uintptr(unsafe.Pointer(&s.n)), uintptr(unsafe.Pointer(&s.m)), uintptr(unsafe.Pointer(&s.k)),
		uintptr(unsafe.Pointer(&s.alpha)), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(&s.ldb)),
		uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(&s.lda)),
		uintptr(unsafe.Pointer(&s.beta)), uintptr(unsafe.Pointer(unsafe.SliceData(c))), uintptr(unsafe.Pointer(&s.ldc)),
		length, length)
	runtime.KeepAlive(s)
}

func op(trans bool) byte {
	if trans {
		return 'T'
	}
	return 'N'
}

// check panics where a matrix, rows×cols after op, does not lie in its slice: the library would write elsewhere.
func check(name string, v []float32, trans bool, rows, cols, ld int) {
	if trans {
		rows, cols = cols, rows
	}
	const most = 1<<31 - 1
	if rows < 0 || cols < 0 || ld < max(1, cols) || rows > most || ld > most || rows > 0 && len(v) < (rows-1)*ld+cols {
		panic(fmt.Sprintf("blas: %s: %d×%d with leading dimension %d in %d values", name, rows, cols, ld, len(v)))
	}
}
