package cuda

import (
	"fmt"
	"os"
	"path/filepath"
)

// EnvBLAS names the environment variable with the path of cuBLAS, for one at an unusual place.
const EnvBLAS = "PLUMBLINE_LIBCUBLAS"

// ownKernels is Backend.BLAS for the package's own products, and what Info says of them.
const ownKernels = "own kernels"

// workspaceBytes is what NVIDIA recommends for Hopper; recorded launches need a workspace that stays.
const workspaceBytes = 32 << 20

// blas is cuBLAS with its handle.
type blas struct {
	api    *cublas
	handle uintptr
	// one and zero are read by pointer.
	one, zero *float32
}

// blasNames are the libraries to try: by soname, in CUDA's directories, in Python's packages.
func blasNames() []string {
	var names []string
	for _, version := range []string{"13", "12", "11"} {
		names = append(names, "libcublas.so."+version)
	}
	for _, pattern := range []string{
		filepath.Join(os.Getenv("VIRTUAL_ENV"), "lib/python3*/site-packages/nvidia/*/lib/libcublas.so.1?"),
		"/usr/local/cuda/lib64/libcublas.so.1?",
		"/usr/local/cuda*/targets/*/lib/libcublas.so.1?",
		"/opt/cuda/lib64/libcublas.so.1?",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublas.so.1?",
		"/usr/lib/python3*/*-packages/nvidia/*/lib/libcublas.so.1?",
	} {
		found, err := filepath.Glob(pattern)
		if err == nil {
			names = append(names, found...)
		}
	}
	return names
}

// openBLAS takes cuBLAS where it is found and wanted, and leaves d.blas nil otherwise. A library that the configuration
// or the environment names must work.
func (d *device) openBLAS(wanted string) error {
	d.info.BLAS = ownKernels
	if wanted == ownKernels {
		return nil
	}
	if wanted == "" {
		wanted = os.Getenv(EnvBLAS)
	}
	names := blasNames()
	if wanted != "" {
		names = []string{wanted}
	}
	b, name, err := d.tryBLAS(names)
	switch {
	case err == nil:
		d.blas, d.info.BLAS = b, name
	case wanted != "":
		return unsupported("%v", err)
	}
	return nil
}

func (d *device) tryBLAS(names []string) (*blas, string, error) {
	handle, name, err := open(names)
	if err != nil {
		return nil, "", err
	}
	b := &blas{api: &cublas{}, one: new(float32), zero: new(float32)}
	*b.one = 1
	if err := bind(handle, b.api); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	if s := b.api.Create(&b.handle); s != 0 {
		return nil, "", fmt.Errorf("%s: cublasCreate: status %d", name, s)
	}
	work, err := d.alloc("cuBLAS", workspaceBytes)
	if err != nil {
		b.api.Destroy(b.handle)
		return nil, "", err
	}
	// In this order: setting the stream resets the workspace.
	s := b.api.SetStream(b.handle, d.stream)
	if s == 0 {
		s = b.api.SetWorkspace(b.handle, work, workspaceBytes)
	}
	if s != 0 {
		b.api.Destroy(b.handle)
		return nil, "", fmt.Errorf("%s: stream and workspace: status %d", name, s)
	}
	return b, name, nil
}

// product is C = op(A)·op(B), row-major, op(A) m×k and op(B) k×n; not both are transposed, and rows lie without gaps.
type product struct {
	ta, tb  bool
	m, n, k int
	a, b, c uint64
}

// width is the second dimension of A and of B as they are stored.
func (p product) width() (a, b int) {
	a, b = p.k, p.n
	if p.ta {
		a = p.m
	}
	if p.tb {
		b = p.k
	}
	return a, b
}

// gemm puts a product into the stream.
func (d *device) gemm(p product) error {
	switch {
	case d.blas == nil:
		return d.ownGEMM(p)
	case d.info.Precision == TF32x3:
		return d.splitGEMM(p)
	case d.info.Precision == BF16:
		return d.blas.multiply(p, d.blas.zero, cublasComputeBF16)
	}
	return d.blas.multiply(p, d.blas.zero, cublasComputeFloat32)
}

func (b *blas) multiply(p product, beta *float32, compute int32) error {
	// Row-major C is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ.
	op := func(t bool) int32 {
		if t {
			return 1
		}
		return 0
	}
	lda, ldb := p.width()
	s := b.api.GemmEx(b.handle, op(p.tb), op(p.ta), int32(p.n), int32(p.m), int32(p.k),
		b.one, p.b, cublasFloat32, int32(ldb), p.a, cublasFloat32, int32(lda),
		beta, p.c, cublasFloat32, int32(p.n), compute, cublasDefaultAlgorithm)
	if s != 0 {
		return fmt.Errorf("cuda: cublasGemmEx of %d×%d by %d×%d: status %d", p.m, p.k, p.k, p.n, s)
	}
	return nil
}

// splitGEMM adds the products of the operands' parts, the small ones first.
func (d *device) splitGEMM(p product) error {
	high, low := p, [2]uint64{}
	for i, operand := range []struct {
		at *uint64
		n  int
	}{{&high.a, p.m * p.k}, {&high.b, p.k * p.n}} {
		if *operand.at == d.exact {
			continue
		}
		h, l := d.parts[2*i], d.parts[2*i+1]
		all := elements(operand.n)
		all.x = min(all.x, maxBlocks)
		if err := d.launch(split, all, num(operand.n), ptr(*operand.at), ptr(h), ptr(l)); err != nil {
			return err
		}
		*operand.at, low[i] = h, l
	}
	beta := d.blas.zero
	for i, at := range low {
		if at == 0 {
			continue
		}
		q := high
		if i == 0 {
			q.a = at
		} else {
			q.b = at
		}
		if err := d.blas.multiply(q, beta, cublasComputeTF32); err != nil {
			return err
		}
		beta = d.blas.one
	}
	return d.blas.multiply(high, beta, cublasComputeTF32)
}

// ownGEMM multiplies with the package's kernels.
func (d *device) ownGEMM(p product) error {
	f := gemmNN
	switch {
	case p.ta && p.tb:
		panic("cuda: product of two transposed matrices")
	case p.ta:
		f = gemmTN
	case p.tb:
		f = gemmNT
	}
	// A block's tile, as in kernels/gemm.h.
	const tileM, tileN = 128, 64
	lda, ldb := p.width()
	tiles := grid{x: (p.n + tileN - 1) / tileN, y: (p.m + tileM - 1) / tileM, threads: 256}
	return d.launch(f, tiles, ptr(p.a), ptr(p.b), ptr(p.c), num(p.m), num(p.n), num(p.k), num(lda), num(ldb), num(p.n))
}
