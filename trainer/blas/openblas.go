//go:build ((linux && !android) || darwin) && (amd64 || arm64) && !static

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

	"github.com/plumbline/plumbline/trainer/head"
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

// Config is the library's version, options and kernels, in its own words.
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

// Gemm implements [head.GEMM].
func (l *OpenBLAS) Gemm(alpha float32, a, b head.Matrix, beta float32, c head.Matrix) {
	m, n := c.Rows, c.Cols
	if m == 0 || n == 0 {
		return
	}
	_, k := a.Dims()
	check("a", a, m, k)
	check("b", b, k, n)
	check("c", c, m, n)
	p := product{alpha: alpha, beta: beta, a: a, b: b, c: c}
	if parts := l.Threads(); parts > 1 && m*n*k >= sharedFrom {
		l.share(parts, p)
		return
	}
	l.multiply(p)
}

// product is C ← α·A·B + β·C.
type product struct {
	alpha, beta float32
	a, b, c     head.Matrix
}

// rows is what gives rows from…from+n−1 of C, columns what gives those columns.
func (p product) rows(from, n int) product {
	p.a, p.c = rowsOf(p.a, from, n), rowsOf(p.c, from, n)
	return p
}

func (p product) columns(from, n int) product {
	p.b, p.c = rowsOf(p.b.T(), from, n).T(), rowsOf(p.c.T(), from, n).T()
	return p
}

// rowsOf is the view of n rows of a matrix as a product sees it: of a transposed one they are columns in memory.
func rowsOf(m head.Matrix, from, n int) head.Matrix {
	if m.Transposed {
		m.Cols, m.Data = n, m.Data[from:]
	} else {
		m.Rows, m.Data = n, m.Data[from*m.Stride:]
	}
	return m
}

// sharedFrom is the number of multiplications from which a product is shared: about 20 µs of one thread.
const sharedFrom = 1 << 21

// share divides C by rows, or by columns where it has more of them, among goroutines.
func (l *OpenBLAS) share(parts int, p product) {
	const lanes = 16 // parts are whole vectors
	m, n := p.c.Rows, p.c.Cols
	size := (max(m, n)/parts + lanes) &^ (lanes - 1)
	var group sync.WaitGroup
	for from := 0; from < max(m, n); from += size {
		count := min(size, max(m, n)-from)
		group.Go(func() {
			if n > m {
				l.multiply(p.columns(from, count))
			} else {
				l.multiply(p.rows(from, count))
			}
		})
	}
	group.Wait()
}

// multiply calls the library; the matrices lie in their slices. The library counts by columns, where a row-major matrix
// is its transpose, so it computes Cᵀ ← α·Bᵀ·Aᵀ + β·Cᵀ. The call takes the Fortran interface, not the C one: with every
// argument an address it needs no reflection and costs about a third of a microsecond.
func (l *OpenBLAS) multiply(p product) {
	m, k := p.a.Dims()
	s := &scalars{
		transA: op(p.a), transB: op(p.b),
		m: int32(m), n: int32(p.c.Cols), k: int32(k),
		lda: int32(p.a.Stride), ldb: int32(p.b.Stride), ldc: int32(p.c.Stride),
		alpha: p.alpha, beta: p.beta,
	}
	at := func(m head.Matrix) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))) }
	const length = 1 // of the two texts, which Fortran compilers pass at the end
	purego.SyscallN(l.sgemm,
		uintptr(unsafe.Pointer(&s.transB)), uintptr(unsafe.Pointer(&s.transA)),
		uintptr(unsafe.Pointer(&s.n)), uintptr(unsafe.Pointer(&s.m)), uintptr(unsafe.Pointer(&s.k)),
		uintptr(unsafe.Pointer(&s.alpha)),
		at(p.b), uintptr(unsafe.Pointer(&s.ldb)),
		at(p.a), uintptr(unsafe.Pointer(&s.lda)),
		uintptr(unsafe.Pointer(&s.beta)),
		at(p.c), uintptr(unsafe.Pointer(&s.ldc)),
		length, length)
	runtime.KeepAlive(s)
}

func op(m head.Matrix) byte {
	if m.Transposed {
		return 'T'
	}
	return 'N'
}

// check panics where a matrix is not rows×cols in a product, or does not lie in its slice: the library would write
// elsewhere.
func check(name string, m head.Matrix, rows, cols int) {
	r, c := m.Dims()
	const most = 1<<31 - 1
	sound := m.Rows >= 0 && m.Cols >= 0 && m.Stride >= max(1, m.Cols) && m.Rows <= most && m.Stride <= most
	if !sound || r != rows || c != cols || m.Rows > 0 && len(m.Data) < (m.Rows-1)*m.Stride+m.Cols {
		panic(fmt.Sprintf("blas: %s: %d×%d with leading dimension %d in %d values", name, r, c, m.Stride, len(m.Data)))
	}
}
